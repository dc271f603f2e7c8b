// Servers and clients on the official Go SDK, for `tests/interop` and `bench`. All of them are in one program:
//
//	peer serve OFFER stdio|http               a server that offers the content of `offer.json`
//	peer scenario REVISION stdio|http TARGET… the client's side of the scenario
//	peer echo                                 an echo server over stdio
//	peer echo-http app|streams PORT           an echo server over HTTP
//	peer call TARGET REVISION PYTHON          a client to measure
package main

import (
	"fmt"
	"os"
)

func main() {
	commands := map[string]func(arguments []string) error{
		"serve":     serveOffer,
		"scenario":  playScenario,
		"echo":      serveEcho,
		"echo-http": serveEchoOverHTTP,
		"call":      callRepeatedly,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: peer serve|scenario|echo|echo-http|call ARGUMENT…")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
