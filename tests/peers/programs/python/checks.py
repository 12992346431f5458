"""The service, and the checks of it, in the order of ../README.md."""

import os
import sys
import threading
import time

import values


class Handler:
    def __init__(self, library):
        self.types = library.types
        self.received = library.received
        self.lock = threading.Lock()
        self.fired = {}

    def echo(self, s):
        return s

    def blob(self, b):
        return b

    def slow(self, s, delay_ms):
        time.sleep(delay_ms / 1000)
        return s

    def fail(self, why):
        if why:
            raise self.types.EchoError(why=why, code=418)
        return ""

    def nothing(self, why):
        self.fail(why)

    def fire(self, s):
        with self.lock:
            self.fired[s] = self.fired.get(s, 0) + 1

    def heard(self, s):
        with self.lock:
            return self.fired.get(s, 0)

    def everything(self, e):
        case = values.cases(self.types).get(e.required_string)
        wrong = case and values.difference(self.received(e), case)
        if wrong:
            print(f"{e.required_string}: {wrong}", file=sys.stderr, flush=True)
            e.required_string += f": {wrong}"
        return e


class Checks:
    def __init__(self, client, library):
        self.client = client
        self.types = library.types
        self.received = library.received
        self.application_exception = library.ApplicationException
        self.failed = 0

    def check(self, name, got, want):
        self.say(name, None if got == want else f"is {got!r:.300}, not {want!r:.300}")

    def say(self, name, wrong):
        self.failed += wrong is not None
        print(f"ok {name}" if wrong is None else f"FAILED {name}: {wrong}", flush=True)

    def raised(self, name, call, want):
        """Checks which EchoError or kind of TApplicationException a call ends with."""
        try:
            got = f"the result {call()!r:.300}"
        except self.types.EchoError as e:
            got = ("EchoError", e.why, e.code)
        except self.application_exception as e:
            got = ("TApplicationException", e.type)
        self.check(name, got, want)

    def echo(self):
        c = self.client
        for name, s in {"empty": "", "short": "hello", "unicode": values.UNICODE, "long": "\u00fc" * 50000}.items():
            self.check(f"echo-{name}", c.echo(s), s)
        for name, b in {"empty": b"", "all": values.ALL_BYTES, "zeros": bytes(100000)}.items():
            self.check(f"blob-{name}", c.blob(b), b)
        self.check("slow", c.slow("slow", 20), "slow")
        self.raised("fail", lambda: c.fail(values.UNICODE), ("EchoError", values.UNICODE, 418))
        self.check("fail-not", c.fail(""), "")
        for name, case in values.cases(self.types).items():
            self.say(f"everything-{name}", values.difference(self.received(c.everything(case)), case))
        # If anything were written in answer to it, the next call would read that as its own reply.
        self.once = f"python {os.getpid()} {time.time_ns()}"
        c.fire(self.once)
        self.check("fire", c.echo("after fire"), "after fire")
        self.raised("missing", lambda: c.missing("?"), ("TApplicationException", 1))
        self.check("after-missing", c.echo("still here"), "still here")

    def peer(self):
        c = self.client
        end = time.monotonic() + 20
        while (heard := c.heard(self.once)) == 0 and time.monotonic() < end:
            time.sleep(0.01)
        self.check("heard", heard, 1)
        self.check("nothing", c.nothing(""), None)
        self.raised("nothing-raises", lambda: c.nothing("no"), ("EchoError", "no", 418))
