"""Python as a peer, with the library that the first argument names. See ../README.md."""

import argparse
import importlib
import sys

import checks


def main():
    library = importlib.import_module(sys.argv[1])
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["serve", "call"])
    parser.add_argument("--transport", choices=library.TRANSPORTS, default="framed")
    parser.add_argument("--protocol", choices=["binary", "compact"], default="binary")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--address")
    parser.add_argument("--service", choices=["echo", "peer"], default="peer")
    args = parser.parse_args(sys.argv[2:])
    if args.role == "serve":
        handler = checks.Handler(library)
        ready = lambda port: print(f"READY 127.0.0.1:{port}", flush=True)
        return library.serve(handler, args.port, args.transport, args.protocol, ready)
    host, port = args.address.rsplit(":", 1)
    run = checks.Checks(library.client(host, int(port), args.transport, args.protocol), library)
    run.echo()
    if args.service == "peer":
        run.peer()
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
