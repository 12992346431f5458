// The service of the product's demo: a small shop catalogue.
//
// It has one method of each shape that a gateway treats differently: a plain result, a declared exception, no result
// at all, and a call that nobody answers.

namespace rs muxgate.demo

// The catalogue has no item of that id. A declared exception: the call itself went well.
exception NotFound {
  1: string id
}

service Catalog {
  // The title of an item. The demo makes this one slow or broken at will, to show what the gateway does about it.
  string find(1: string id)

  // Up to `count` ids of items that go well with this one, best first.
  list<string> recommend(1: string id, 2: i32 count) throws (1: NotFound nf)

  // Is anybody there?
  void ping()

  // Somebody looked at an item. Counted when it arrives, and never confirmed.
  oneway void seen(1: string id)
}
