// Package fieldcases plays collected cases of what agents and their files do in the field: a conversation, a file or
// an answer of a vendor that is easily read wrongly, and assertions about what precis makes of it. They are an opt-in
// suite: PRECIS_CASES names the folder with cases.jsonl and its files. Without the variable nothing is played.
//
//	PRECIS_CASES=DIR go test ./internal/testkit/fieldcases -run 'TestCases/R01'
package fieldcases
