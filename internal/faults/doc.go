// Package faults plays the collection of faults of other systems against the whole product: the HTTP API on a real
// listener, the service, Temporal, a worker and Postgres, with a scripted vendor in the place of the models. It holds
// tests alone. The cases are read from the shared folder; without it the tests are skipped. docs/faults.md lists them.
//
//	collection_test.go  the vocabulary of the cases, read strictly
//	script_test.go      the answers of the scripted vendor
//	server_test.go      the system that the cases share, and an HTTP client
//	play_test.go        one case on its way: its operations, as calls of the API
//	invariants_test.go  what holds after every step of every case
//	form_test.go        its messages in the format of another API
//	temporal_test.go    what Temporal has of a run
//	checks_*_test.go    what each case is about beside that
//	table_test.go       the table of docs/faults.md
//	faults_test.go      the tests
package faults
