// Package faults holds the fault cases: failures that were seen in other systems, as conversations with a scripted
// vendor. Its tests play them against the whole product: the HTTP API on a real listener, the service, Temporal, a
// worker and PostgreSQL. The tests of package pipeline play those that the pure stages decide. docs/faults.md lists
// all cases.
//
//	cases/*.json        the cases, a file for each kind of fault
//	cases.go, json.go   reads them
//	collection_test.go  their vocabulary, with unknown words refused
//	script_test.go      the answers of the scripted vendor
//	server_test.go      the system that the cases share, and an HTTP client
//	play_test.go        one case being played: its operations as API calls
//	invariants_test.go  what holds after every operation of every case
//	form_test.go        messages in the format of another API
//	temporal_test.go    what Temporal stores of a run
//	checks_*_test.go    what each case proves beyond that
//	kinds_test.go       the rule that makes each kind of fault impossible
//	table_test.go       docs/faults.md
//	faults_test.go      the tests
package faults
