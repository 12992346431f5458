// An Apache Thrift peer: the service Echo as a server, and a client that calls all of it and compares each reply.
// Flags and output are described in crates/testkit/src/apache.rs.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
)

func protocols(name string) thrift.TProtocolFactory {
	if name == "compact" {
		return thrift.NewTCompactProtocolFactoryConf(nil)
	}
	return thrift.NewTBinaryProtocolFactoryConf(nil)
}

func main() {
	if len(os.Args) < 2 {
		fatal(fmt.Errorf("server or client?"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	protocol := flags.String("protocol", "binary", "binary or compact")
	name := flags.String("name", "go", "the server's name")
	port := flags.Int("port", 0, "the server's port")
	dest := flags.String("dest", "", "host:port to call")
	n := flags.Int("n", 1, "how often to call each method")
	_ = flags.Parse(os.Args[2:])
	switch os.Args[1] {
	case "server":
		serve(*name, *port, protocols(*protocol))
	case "client":
		call(*dest, *n, protocols(*protocol))
	default:
		fatal(fmt.Errorf("server or client?"))
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// ---- server ----

type echo struct {
	name string
	lock sync.Mutex
}

func serve(name string, port int, factory thrift.TProtocolFactory) {
	socket, err := thrift.NewTServerSocket(fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		err = socket.Listen()
	}
	if err != nil {
		fatal(err)
	}
	fmt.Printf("READY %v\n", socket.Addr())
	framed := thrift.NewTFramedTransportFactoryConf(thrift.NewTTransportFactory(), nil)
	server := thrift.NewTSimpleServer4(&echo{name: name}, socket, framed, factory)
	fatal(server.Serve())
}

// What TProcessor asks for and a server without multiplexing does not use.
func (e *echo) ProcessorMap() map[string]thrift.TProcessorFunction  { return nil }
func (e *echo) AddToProcessorMap(string, thrift.TProcessorFunction) {}

func (e *echo) say(event, method string, arg string) {
	line, _ := json.Marshal(map[string]string{"event": event, "server": e.name, "method": method, "arg": arg})
	e.lock.Lock()
	defer e.lock.Unlock()
	fmt.Printf("%s\n", line)
}

func (e *echo) Process(ctx context.Context, in, out thrift.TProtocol) (bool, thrift.TException) {
	method, kind, seqid, err := in.ReadMessageBegin(ctx)
	if err != nil {
		return false, thrift.WrapTException(err)
	}
	args, err := readStruct(ctx, in)
	if err == nil {
		err = in.ReadMessageEnd(ctx)
	}
	if err != nil {
		return false, thrift.WrapTException(err)
	}
	first, _ := args.field(1)
	arg := ""
	if first.of == thrift.STRING {
		arg = string(first.any.([]byte))
	}
	e.say("arrival", method, arg)
	result, known := e.result(method, arg, first, args)
	if kind != thrift.ONEWAY {
		err = reply(ctx, out, method, seqid, result, known)
	}
	e.say("done", method, arg)
	return err == nil, thrift.WrapTException(err)
}

func reply(ctx context.Context, out thrift.TProtocol, method string, seqid int32, result value, known bool) error {
	kind := thrift.REPLY
	if !known {
		kind = thrift.EXCEPTION
	}
	if err := out.WriteMessageBegin(ctx, method, kind, seqid); err != nil {
		return err
	}
	var err error
	if known {
		err = result.write(ctx, out)
	} else {
		err = thrift.NewTApplicationException(thrift.UNKNOWN_METHOD, "no method "+method).Write(ctx, out)
	}
	if err != nil {
		return err
	}
	if err := out.WriteMessageEnd(ctx); err != nil {
		return err
	}
	return out.Flush(ctx)
}

func (e *echo) result(method, arg string, first, args value) (value, bool) {
	switch method {
	case "echo":
		if arg == "whoami" {
			return structOf(0, text(e.name)), true
		}
		return structOf(0, first), true
	case "blob", "everything":
		return structOf(0, first), true
	case "slow":
		if delay, ok := args.field(2); ok {
			time.Sleep(time.Duration(delay.any.(int32)) * time.Millisecond)
		}
		return structOf(0, first), true
	case "fail":
		if arg == "" {
			return structOf(0, first), true
		}
		return structOf(1, structOf(1, first, 2, i32(418))), true
	case "fire":
		return structOf(), true
	}
	return value{}, false
}

// ---- client ----

type client struct {
	ctx      context.Context
	protocol thrift.TProtocol
	seqid    int32
}

func (c *client) send(method string, kind thrift.TMessageType, args value) error {
	c.seqid++
	if err := c.protocol.WriteMessageBegin(c.ctx, method, kind, c.seqid); err != nil {
		return err
	}
	if err := args.write(c.ctx, c.protocol); err != nil {
		return err
	}
	if err := c.protocol.WriteMessageEnd(c.ctx); err != nil {
		return err
	}
	return c.protocol.Flush(c.ctx)
}

// The result as text, or the type of the exception.
func (c *client) call(method string, args value) string {
	if err := c.send(method, thrift.CALL, args); err != nil {
		fatal(err)
	}
	name, kind, seqid, err := c.protocol.ReadMessageBegin(c.ctx)
	if err != nil {
		fatal(err)
	}
	if name != method || seqid != c.seqid {
		return fmt.Sprintf("reply to %s %d, wanted %s %d", name, seqid, method, c.seqid)
	}
	if kind == thrift.EXCEPTION {
		e := thrift.NewTApplicationException(thrift.UNKNOWN_APPLICATION_EXCEPTION, "")
		if err := e.Read(c.ctx, c.protocol); err != nil {
			fatal(err)
		}
		return fmt.Sprintf("exception %d", e.TypeId())
	}
	result, err := readStruct(c.ctx, c.protocol)
	if err == nil {
		err = c.protocol.ReadMessageEnd(c.ctx)
	}
	if err != nil {
		fatal(err)
	}
	return result.String()
}

func call(dest string, n int, factory thrift.TProtocolFactory) {
	conf := &thrift.TConfiguration{ConnectTimeout: 30 * time.Second, SocketTimeout: 30 * time.Second}
	transport := thrift.NewTFramedTransportConf(thrift.NewTSocketConf(dest, conf), conf)
	if err := transport.Open(); err != nil {
		fatal(err)
	}
	c := &client{ctx: context.Background(), protocol: factory.GetProtocol(transport)}
	calls, ok := 0, 0
	failures := map[string]int{}
	check := func(got string, want fmt.Stringer) {
		calls++
		if got == want.String() {
			ok++
		} else {
			failures[fmt.Sprintf("wanted %v, got %s", want, got)] = 1
		}
	}
	for i := 0; i < n; i++ {
		c.everyMethod(i, check)
	}
	summary, _ := json.Marshal(map[string]any{"summary": "client", "n": calls, "ok": ok, "failures": failures})
	fmt.Println(string(summary))
}

type stringer string

func (s stringer) String() string { return string(s) }

func (c *client) everyMethod(i int, check func(string, fmt.Stringer)) {
	words := text(fmt.Sprintf("call %d \u2603", i))
	check(c.call("echo", structOf(1, words)), structOf(0, words))
	blob := text(strings.Repeat("\x00\xfe blob", 1+700*(i%3)))
	check(c.call("blob", structOf(1, blob)), structOf(0, blob))
	check(c.call("slow", structOf(1, words, 2, i32(5))), structOf(0, words))
	// If anything were written in answer to it, the next call would read that as its own reply.
	if err := c.send("fire", thrift.ONEWAY, structOf(1, words)); err != nil {
		fatal(err)
	}
	check(c.call("fail", structOf(1, words)), structOf(1, structOf(1, words, 2, i32(418))))
	check(c.call("fail", structOf(1, text(""))), structOf(0, text("")))
	check(c.call("everything", structOf(1, everything(true))), structOf(0, everything(true)))
	check(c.call("noSuchMethod", structOf(1, words)), stringer("exception 1"))
}
