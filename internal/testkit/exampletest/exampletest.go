// Package exampletest scripts the model that the agents of the examples talk to.
package exampletest

import (
	"strings"

	"precis/internal/testkit/vendorserver"
)

// Summary is the scripted model's answer to a request for a summary.
const Summary = "<summary>The user asked one thing after another; each was answered.</summary>"

// Script answers a message of the agent with "Answer to" and its first two words, and a request for a summary with
// Summary. A request of more than window tokens is refused as too large, none is with a window of 0.
func Script(window int) vendorserver.Script {
	s := vendorserver.Script{
		Key: "test-key",
		Default: &vendorserver.Answer{Func: func(r vendorserver.Request) vendorserver.Answer {
			if AsksForSummary(r) {
				return vendorserver.Answer{Text: Summary}
			}
			words := strings.Fields(r.LastUser)
			return vendorserver.Answer{Text: "Answer to " + strings.Join(words[:min(len(words), 2)], " ") + "."}
		}},
	}
	if window > 0 {
		s.Windows = map[string]int{"": window}
	}
	return s
}

// AsksForSummary reports whether a request is one of precis for a summary, not one of the agent.
func AsksForSummary(r vendorserver.Request) bool { return strings.Contains(r.LastUser, "<summary>") }
