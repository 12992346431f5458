// Go as a peer. See ../README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"muxgate/peers/echo"
)

// What makes the transport and the protocol of a connection.
func factories(transport, protocol string) (thrift.TTransportFactory, thrift.TProtocolFactory) {
	conf := &thrift.TConfiguration{}
	var protocols thrift.TProtocolFactory = thrift.NewTBinaryProtocolFactoryConf(conf)
	id := thrift.THeaderProtocolBinary
	if protocol == "compact" {
		protocols, id = thrift.NewTCompactProtocolFactoryConf(conf), thrift.THeaderProtocolCompact
	}
	switch transport {
	case "framed":
		return thrift.NewTFramedTransportFactoryConf(thrift.NewTTransportFactory(), conf), protocols
	case "buffered":
		return thrift.NewTBufferedTransportFactory(8192), protocols
	default:
		conf.THeaderProtocolID = thrift.THeaderProtocolIDPtrMust(id)
		// The protocol makes the transport.
		return thrift.NewTTransportFactory(), thrift.NewTHeaderProtocolFactoryConf(conf)
	}
}

func main() {
	if len(os.Args) < 2 {
		fatal(fmt.Errorf("serve or call?"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	transport := flags.String("transport", "framed", "framed, buffered or header")
	protocol := flags.String("protocol", "binary", "binary or compact")
	port := flags.Int("port", 0, "the server's port")
	log := flags.Bool("log", false, "a line for each call of echo and slow, when it comes and when it is done")
	address := flags.String("address", "", "host:port to call")
	service := flags.String("service", "peer", "echo or peer")
	_ = flags.Parse(os.Args[2:])
	transports, protocols := factories(*transport, *protocol)
	if os.Args[1] == "serve" {
		serve(*port, &handler{log: *log, fired: map[string]int32{}}, transports, protocols)
		return
	}
	socket := thrift.NewTSocketConf(*address, &thrift.TConfiguration{SocketTimeout: 30 * time.Second})
	wrapped, err := transports.GetTransport(socket)
	if err == nil {
		err = wrapped.Open()
	}
	if err != nil {
		fatal(err)
	}
	c := checks{ctx: context.Background(), client: echo.NewBeyondClientFactory(wrapped, protocols)}
	c.ofEcho()
	if *service == "peer" {
		c.ofPeer()
	}
	if c.failed > 0 {
		os.Exit(1)
	}
}

func serve(port int, h *handler, transports thrift.TTransportFactory, protocols thrift.TProtocolFactory) {
	socket, err := thrift.NewTServerSocket(fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		err = socket.Listen()
	}
	if err != nil {
		fatal(err)
	}
	fmt.Printf("READY %v\n", socket.Addr())
	fatal(thrift.NewTSimpleServer4(echo.NewPeerProcessor(h), socket, transports, protocols).Serve())
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
