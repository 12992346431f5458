"use strict";
// The calls, in the order of ../README.md.

const { TApplicationException } = require("./library").Thrift;
const { EchoError } = require("./echo/echo_types");
const { ALL_BYTES, UNICODE, cases, difference } = require("./values");

class Checks {
  constructor(client) {
    this.client = client;
    this.once = `node ${process.pid} ${Date.now()}`;
    this.failed = 0;
  }

  say(name, wrong) {
    if (wrong) this.failed += 1;
    console.log(wrong ? `FAILED ${name}: ${String(wrong).slice(0, 500)}` : `ok ${name}`);
  }

  equal(name, got, want) {
    const same = Buffer.isBuffer(want) ? Buffer.isBuffer(got) && got.equals(want) : got === want;
    this.say(name, same ? null : `is ${got}, not ${want}`);
  }

  async raised(name, call, right) {
    const got = await call.catch((e) => e);
    this.say(name, right(got) ? null : `is ${got}`);
  }

  async echo() {
    const { client } = this;
    const strings = { empty: "", short: "hello", unicode: UNICODE, long: "\u00fc".repeat(50000) };
    for (const [name, s] of Object.entries(strings)) this.equal(`echo-${name}`, await client.echo(s), s);
    const blobs = { empty: Buffer.alloc(0), all: ALL_BYTES, zeros: Buffer.alloc(100000) };
    for (const [name, b] of Object.entries(blobs)) this.equal(`blob-${name}`, await client.blob(b), b);
    this.equal("slow", await client.slow("slow", 20), "slow");
    const is = (why) => (e) => e instanceof EchoError && e.why === why && e.code === 418;
    await this.raised("fail", client.fail(UNICODE), is(UNICODE));
    this.equal("fail-not", await client.fail(""), "");
    for (const e of cases()) {
      this.say(`everything-${e.required_string}`, difference(await client.everything(e), e));
    }
    // If anything were written in answer to it, the next call would read that as its own reply.
    await client.fire(this.once);
    this.equal("fire", await client.echo("after fire"), "after fire");
    await this.raised("missing", client.missing("?"), (e) => e instanceof TApplicationException && e.type === 1);
    this.equal("after-missing", await client.echo("still here"), "still here");
  }

  async peer() {
    const { client, once } = this;
    let heard = 0;
    for (let i = 0; i < 2000 && heard === 0; i++) {
      heard = await client.heard(once);
      await new Promise((done) => setTimeout(done, 10));
    }
    this.equal("heard", heard, 1);
    this.equal("nothing", await client.nothing(""), undefined);
    await this.raised("nothing-raises", client.nothing("no"), (e) => e instanceof EchoError && e.why === "no");
  }
}

module.exports = { Checks };
