package transcript

import (
	"precis/pipeline/transcript/rawjson"
)

func (f openHands) write(out Output) ([]byte, error) {
	all, err := out.entries(f)
	if err != nil {
		return nil, err
	}
	at := firstStored(all, "timestamp")
	e := out.Meta.Envelope
	run := len(e) > 0 && e[0] == '{'
	for i, x := range all {
		if x.made == nil {
			continue
		}
		if run {
			x.native = f.madeV0(*x.made, i)
		}
		if all[i].native = x.native; at != nil {
			all[i].native = rawjson.AddPair(x.native, "timestamp", at)
		}
	}
	if !run {
		return rawjson.Lines(append(envelopeLines(e), nativesOf(all)...)), nil
	}
	// One run per line, as in the file, the events with the system prompt first.
	natives := nativesOf(all)
	if history, ok := rawjson.Root(e).Lookup("history"); ok && history.IsArray() {
		natives = append(envelopeLines(history.Raw()), natives...)
	}
	return rawjson.OneLine(rawjson.PutArray(e, rawjson.ArrayOf(natives), "history")), nil
}
