// Package eval measures what a compaction keeps: a recorded conversation is grown message by message and compacted each
// time it reaches its limit, and after each compaction the context is searched for what was said before. It asks no
// clock and rolls no dice, so that the same conversation gives the same figures.
//
//	method.go     who writes the summary, and by which policy what is too much is cut
//	scripted.go   the summarizer that stands in for a model
//	survival.go   growing, compacting and measuring one conversation
//	report.go     the figures of many
//	picture.go    and their picture
package eval
