"use strict";
// The library, less what it gets wrong (0.24.0, and all before it back to 0.17.0): it would hide what a gateway does.

const thrift = require("thrift");

// It reads every bool in a compact list as false.
const readBool = thrift.TCompactProtocol.prototype.readBool;
thrift.TCompactProtocol.prototype.readBool = function () {
  return this.boolValue_.hasBoolValue ? readBool.call(this) : this.readByte() === 1;
};

// It writes -0.0 as 0.0.
thrift.TBinaryProtocol.prototype.writeDouble = function (value) {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  this.trans.write(bytes);
};
thrift.TCompactProtocol.prototype.writeDouble = function (value) {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  this.trans.write(bytes);
};

// It leaves out the kind of a TApplicationException, as it looks for it under another name.
Object.defineProperty(thrift.Thrift.TApplicationException.prototype, "code", {
  get() {
    return this.type;
  },
});

module.exports = thrift;
