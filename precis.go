// Package precis compacts conversations from a Go program that speaks to Temporal: from a workflow of its own, or by a
// Temporal client. Content stays with precis and its HTTP API; what passes through Temporal are ids, numbers and error
// kinds.
//
// From a workflow:
//
//	result, err := precis.Compact(ctx, precis.Request{Tenant: "default", Conversation: id})
//
// By a client, with the id of a run that the HTTP API has given (POST /v1/conversations/{id}/compactions):
//
//	launch := precis.Launch{Input: precis.Input{Tenant: "default", Conversation: id, Run: run}}
//	result, err := precis.Wait(ctx, client, launch)
//
// The work is done by precis's own workers: a program that uses this package needs no database and no vendor's key.
//
//	names.go    the names that clients, workflows and workers share
//	outcome.go  how a run ends
//	run.go      a run: its input, its result, its workflow id
//	launch.go   what a run's workflow is started with
//	client.go   start, wait and cancel by a Temporal client
//	child.go    compact as a child of a workflow
package precis
