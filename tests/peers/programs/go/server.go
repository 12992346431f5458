package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"muxgate/peers/echo"
)

// The service. With log, it prints a line of JSON when a call comes in and another when it is done.
type handler struct {
	log   bool
	lock  sync.Mutex
	fired map[string]int32
}

func (h *handler) say(event, method, arg string) {
	if !h.log {
		return
	}
	line, _ := json.Marshal(map[string]string{"event": event, "method": method, "arg": arg})
	h.lock.Lock()
	defer h.lock.Unlock()
	fmt.Printf("%s\n", line)
}

func (h *handler) Echo(_ context.Context, s string) (string, error) {
	h.say("arrival", "echo", s)
	defer h.say("done", "echo", s)
	return s, nil
}

func (h *handler) Blob(_ context.Context, b []byte) ([]byte, error) { return b, nil }

func (h *handler) Slow(_ context.Context, s string, delayMs int32) (string, error) {
	h.say("arrival", "slow", s)
	defer h.say("done", "slow", s)
	time.Sleep(time.Duration(delayMs) * time.Millisecond)
	return s, nil
}

func (h *handler) Fail(_ context.Context, why string) (string, error) {
	if why == "" {
		return "", nil
	}
	return "", &echo.EchoError{Why: why, Code: 418}
}

func (h *handler) Nothing(ctx context.Context, why string) error {
	_, err := h.Fail(ctx, why)
	return err
}

func (h *handler) Fire(_ context.Context, s string) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.fired[s]++
	return nil
}

func (h *handler) Heard(_ context.Context, s string) (int32, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.fired[s], nil
}

func (h *handler) Everything(_ context.Context, e *echo.Everything) (*echo.Everything, error) {
	for _, want := range cases() {
		if want.RequiredString != e.RequiredString {
			continue
		}
		if wrong := difference(e, want); wrong != "" {
			fmt.Fprintln(os.Stderr, e.RequiredString, wrong)
			e.RequiredString += ": " + wrong
		}
		break
	}
	return e, nil
}
