package transcript

import "precis/pipeline/transcript/rawjson"

// SWEAgent is a name, not a format: it reads a file as a trajectory of SWE-agent or of mini-swe-agent, whose messages
// are those of the format openai. Detect never gives it; it is for files that do not show what they are.
const SWEAgent Format = "swe-agent"

func detectNever(rawjson.Outline) bool { return false }

func openSWEAgent(s *stream, o Options) source {
	d := openOpenAI(s, o).(*documents)
	d.wrapper = sweWrapper
	return d
}

// sweWrapper takes every object around messages for one of the two: SWE-agent's list is called history.
func sweWrapper(b []byte, outer rawjson.Value, arrayKey string) string {
	switch w := openAIWrapper(b, outer, arrayKey); w {
	case sourceSWE, sourceMiniSWE, sourceUnknown:
		return w
	}
	return sourceMiniSWE
}
