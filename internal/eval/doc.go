// Package eval measures what a compaction keeps: a recorded conversation is grown message by message and compacted each
// time it reaches its limit, and after each compaction the context is searched for what was said before. No clock and
// no random numbers are used, so that the same conversation gives the same figures.
//
//	method.go     who writes the summary, and the policy by which its input is cut to size
//	scripted.go   the summarizer that replaces a model
//	survival.go   growing, compacting and measuring one conversation
//	report.go     the figures of many conversations
//	picture.go    the picture of these figures
package eval
