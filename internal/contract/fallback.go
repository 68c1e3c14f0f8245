package contract

// Fallback is what a run does after a failure. The ladder in package workflows says which failure leads to which. As
// the rung of an attempt it names the fallback that led to it.
type Fallback string

// RungFirst is the rung of an attempt that no failure led to.
const RungFirst Fallback = "first"

// The fallbacks.
const (
	// NextSummarizer asks the next summarizer of the list. After the last one the run fails.
	NextSummarizer Fallback = "next_summarizer"
	// LargerWindow asks the next summarizer whose window is larger; without one, the last of the list.
	LargerWindow Fallback = "larger_window"
	// SlimHarder halves the input.
	SlimHarder Fallback = "slim_harder"
	// ShorterOutput adds to the prompt that the summary has to be shorter.
	ShorterOutput Fallback = "shorter_output"
	// HalfInput halves the input and asks for a shorter summary.
	HalfInput Fallback = "half_input"
	// OnceMore repeats the request with a change that makes the model answer differently.
	OnceMore Fallback = "once_more"
	// PlainText sends the input as one plain text.
	PlainText Fallback = "plain_text"
	// UseDigest takes the digest at once.
	UseDigest Fallback = "digest"
	// SummarizeAll plans again, so that everything is summarized.
	SummarizeAll Fallback = "full"
	// TailPreviews cuts old tool results of the tail to previews.
	TailPreviews Fallback = "tail_previews"
	// TailHeadAndTail cuts the middle out of oversized parts of the tail.
	TailHeadAndTail Fallback = "tail_head_and_tail"
	// TakeSmaller accepts a context that is above the limit if it is smaller than before.
	TakeSmaller Fallback = "take_smaller"
	// Supersede ends the run, because the conversation has changed meanwhile.
	Supersede Fallback = "supersede"
	// Fail ends the run as failed.
	Fail Fallback = "fail"
)
