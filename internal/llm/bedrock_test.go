package llm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"precis/internal/contract"
	"precis/internal/llm"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

// bedrockEnvironment hides the AWS configuration of the machine.
func bedrockEnvironment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEARER_TOKEN_BEDROCK",
	} {
		t.Setenv(name, variables[name])
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/credentials")
}

// TestBedrockSigns: without a key a request is signed with AWS's credentials, for the service and the region.
func TestBedrockSigns(t *testing.T) {
	bedrockEnvironment(t, map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_REGION": "eu-central-1",
	})
	srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: "a summary"}}})
	client, err := llm.New(llm.Vendor{Name: "bedrock", Type: contract.ProtocolBedrock, BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Call(t.Context(),
		llm.Call{
			Model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0", System: "You compact.",
			User: "The transcript.",
		})
	if err != nil || res.Text != "a summary" {
		t.Fatalf("%q, %v", res.Text, err)
	}
	req := srv.Requests()[0]
	if want := "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke-with-response-stream"; req.Path != want {
		t.Errorf("the path is %s, want %s", req.Path, want)
	}
	signed := req.Header.Get("Authorization")
	for _, part := range []string{
		"AWS4-HMAC-SHA256 Credential=AKIDTEST/", "/eu-central-1/bedrock/aws4_request",
		"Signature=",
	} {
		if !strings.Contains(signed, part) {
			t.Errorf("authorization %q lacks %q", signed, part)
		}
	}
	if key := req.Header.Get("X-Api-Key"); key != "" {
		t.Errorf("a key of Anthropic's is sent: %q", key)
	}
}

// TestBedrockWithout: the error names what is missing, and is not retried.
func TestBedrockWithout(t *testing.T) {
	bedrockEnvironment(t, nil)
	srv := vendorserver.New(t, vendorserver.Script{})
	if _, err := llm.New(llm.Vendor{Name: "bedrock", Type: contract.ProtocolBedrock, BaseURL: srv.URL}); err == nil ||
		!strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("without a region: %v", err)
	}
	t.Setenv("AWS_REGION", "us-east-1")
	client, err := llm.New(llm.Vendor{Name: "bedrock", Type: contract.ProtocolBedrock, BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Call(context.Background(),
		llm.Call{Model: "anthropic.claude-opus-5", System: "You compact.", User: "The transcript."})
	var kind *pipeline.Error
	if !errors.As(err, &kind) || kind.Kind != pipeline.Auth || !strings.Contains(kind.Message, "AWS_ACCESS_KEY_ID") {
		t.Errorf("without credentials: %v", err)
	}
	if n := len(srv.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
