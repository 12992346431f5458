// TTwitter: what stands before each message of a framed Thrift connection once both ends have agreed to it.
//
// The client asks by calling a method named __can__finagle__trace__v3__ with ConnectionOptions as the first message of
// the connection; any reply but an EXCEPTION means yes. From then on a request frame is a RequestHeader and then the
// message, a reply frame a ResponseHeader and then the message. There is nothing between the two, and the header has no
// message head of its own.
//
// Ids are 64-bit patterns; Thrift has only signed integers for them.

namespace rs muxgate.finagle

// The argument of the upgrade call. Room for later; nothing has been put into it yet.
struct ConnectionOptions {
}

// The answer to the upgrade call. Empty as well.
struct UpgradeReply {
}

// Who is calling, as the caller's configuration has it. A claim, not a proof.
struct ClientId {
  1: string name
}

// One context: the same keys and values that a Mux dispatch carries.
struct RequestContext {
  1: binary key
  2: binary value
}

// One entry of a dtab: a name that begins with src continues at dst.
struct Delegation {
  1: string src
  2: string dst
}

struct RequestHeader {
  // The low half of the trace id, and the id of this call within the trace.
  1: i64 trace_id
  2: i64 span_id

  // The call that this one is made for; absent at the root of a trace.
  3: optional i64 parent_span_id

  // Number 4 is not in use.

  // Whether the trace is recorded; absent while nobody has decided.
  5: optional bool sampled

  6: optional ClientId client_id

  // The flags word of the trace, bit for bit as in a Mux trace context.
  7: optional i64 flags

  // In order; a later entry for the same key wins, and an entry for the trace or the client id wins over the fields
  // above.
  8: list<RequestContext> contexts

  // Where the request is to go: the text of a path.
  9: optional string dest

  // The caller's own delegations, in order.
  10: optional list<Delegation> delegations

  // The high half of a 128-bit trace id. Widely read and hardly ever written: such an id travels in the contexts.
  11: optional i64 trace_id_high
}

// A piece of a trace that a server may hand back; hardly any server does. Its lists of annotations, numbers 6 and 8, are
// left out here: a reader skips what it does not know.
struct Span {
  1: i64 trace_id
  3: string name
  4: i64 id
  5: optional i64 parent_id
  9: optional bool debug
  10: optional i64 timestamp
  11: optional i64 duration
  12: optional i64 trace_id_high
}

struct ResponseHeader {
  1: list<Span> spans
  2: list<RequestContext> contexts
}
