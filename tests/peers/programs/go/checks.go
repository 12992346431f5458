package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"muxgate/peers/echo"
)

type checks struct {
	ctx    context.Context
	client *echo.BeyondClient
	once   string
	failed int
}

func (c *checks) check(name string, right bool, got any, err error) {
	if right && err == nil {
		fmt.Println("ok", name)
		return
	}
	c.failed++
	fmt.Printf("FAILED %s: is %.300v, error %v\n", name, got, err)
}

func (c *checks) echo(name, s string) {
	got, err := c.client.Echo(c.ctx, s)
	c.check(name, got == s, got, err)
}

func (c *checks) blob(name string, b []byte) {
	got, err := c.client.Blob(c.ctx, b)
	c.check(name, bytes.Equal(got, b), got, err)
}

func (c *checks) raised(name string, err error, why string) {
	e, is := err.(*echo.EchoError)
	c.check(name, is && e.Why == why && e.Code == 418, err, nil)
}

func (c *checks) ofEcho() {
	c.echo("echo-empty", "")
	c.echo("echo-short", "hello")
	c.echo("echo-unicode", unicode)
	c.echo("echo-long", strings.Repeat("\u00fc", 50000))
	c.blob("blob-empty", []byte{})
	c.blob("blob-all", allBytes())
	c.blob("blob-zeros", make([]byte, 100000))
	got, err := c.client.Slow(c.ctx, "slow", 20)
	c.check("slow", got == "slow", got, err)
	_, err = c.client.Fail(c.ctx, unicode)
	c.raised("fail", err, unicode)
	got, err = c.client.Fail(c.ctx, "")
	c.check("fail-not", got == "", got, err)
	for _, e := range cases() {
		got, err := c.client.Everything(c.ctx, e)
		wrong := "nothing"
		if err == nil {
			wrong = difference(got, e)
		}
		c.check("everything-"+e.RequiredString, wrong == "", wrong, err)
	}
	// If anything were written in answer to it, the next call would read that as its own reply.
	c.once = fmt.Sprintf("go %d %d", os.Getpid(), time.Now().UnixNano())
	if err := c.client.Fire(c.ctx, c.once); err != nil {
		c.check("fire", false, nil, err)
	}
	c.echo("fire", "after fire")
	_, err = c.client.Missing(c.ctx, "?")
	e, is := err.(thrift.TApplicationException)
	c.check("missing", is && e.TypeId() == thrift.UNKNOWN_METHOD, err, nil)
	c.echo("after-missing", "still here")
}

func (c *checks) ofPeer() {
	var heard int32
	var err error
	for end := time.Now().Add(20 * time.Second); heard == 0 && err == nil && time.Now().Before(end); {
		if heard, err = c.client.Heard(c.ctx, c.once); heard == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	c.check("heard", heard == 1, heard, err)
	err = c.client.Nothing(c.ctx, "")
	c.check("nothing", err == nil, nil, err)
	c.raised("nothing-raises", c.client.Nothing(c.ctx, "no"), "no")
}
