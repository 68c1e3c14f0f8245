package service_test

import (
	"encoding/json"
	"testing"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/service"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

// An agent that reports the same overflow again and again, with no model to be had. A digest lands once;
// another one in its place would be no smaller, so that the second attempt finds that nothing helps, and no third is
// made before a message comes.
func TestADigestIsNotReplacedByAnother(t *testing.T) {
	t.Parallel()
	sys, s := served(t, vendorserver.Script{Default: &vendorserver.Answer{Error: &vendorserver.Error{
		Status:  400,
		Message: "bad",
	}}})
	ref := create(t, s, window(16_000), "")
	appendTo(t, s, ref, user("u1"), assistant(abc(9000)), user("u2"))
	overflow := service.ReplyEnd{Error: &service.ReplyError{
		Status: 400,
		Body:   json.RawMessage(`{"error":{"code":"context_length_exceeded","message":"too long"}}`),
	}}
	var last wire.Appended
	for range 4 {
		reply, err := s.OpenReply(t.Context(), ref, 0, service.ContextRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if last, err = s.EndReply(t.Context(), ref, reply.ID, overflow); err != nil {
			t.Fatal(err)
		}
		idle(t, sys, ref)
	}
	list := runsOf(t, s, ref)
	if len(list) != 2 || list[1].Outcome != precis.OutcomeApplied || !list[1].Facts.Digest ||
		list[0].Outcome != precis.OutcomeSkipped || list[0].ErrorKind != pipeline.NoShrink {
		t.Errorf("%d runs:\n%s", len(list), steps(t, sys, ref))
	}
	if last.Run != nil || last.Trigger.Hold == "" {
		t.Errorf("the last report started %v, held because of %q", last.Run, last.Trigger.Hold)
	}
}
