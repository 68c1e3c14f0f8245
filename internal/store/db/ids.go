package db

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// IDProblem returns why s cannot be the id of something new, "" if it can. An id has 1 to max bytes of UTF-8 and can be
// distinguished from every other one by eye, in a path, a log and a terminal: no control, format (such as bidirectional
// ones), invisible, private-use or unassigned characters, no space at the ends and no other space than U+0020 within,
// not only slashes, and none of the segments . and .. between slashes. This is the one rule for all ids that people
// choose.
func IDProblem(s string, max int) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > max:
		return fmt.Sprintf("has %d bytes; an id has at most %d", len(s), max)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.TrimSpace(s) != s:
		return "begins or ends with a space"
	case strings.Trim(s, "/") == "":
		return "has nothing but slashes"
	}
	for _, r := range s {
		if !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
			return fmt.Sprintf("contains %U; an id has no control, format, invisible or unassigned characters", r)
		}
	}
	for segment := range strings.SplitSeq(s, "/") {
		if segment == "." || segment == ".." {
			return fmt.Sprintf("has the segment %q, which programs take out of a path", segment)
		}
	}
	return ""
}

// GoodID reports whether s can be the id of something new, by IDProblem.
func GoodID(s string, max int) bool { return IDProblem(s, max) == "" }

// PossibleID reports whether a row could have the id s: those of earlier releases had only to be UTF-8 of 1 to max
// bytes without control characters, and can still be read.
func PossibleID(s string, max int) bool {
	return s != "" && len(s) <= max && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// CleanID returns an id with which something can be imported whose own id GoodID refuses: what is left of it, with a
// part of its hash, so that different ids stay different. An id that is good is returned unchanged.
func CleanID(s string, max int) string {
	if GoodID(s, max) {
		return s
	}
	kept := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
			return -1
		}
		return r
	}, s)
	for segment := range strings.SplitSeq(kept, "/") {
		if segment == "." || segment == ".." {
			kept = "" // what is left would have the same fault
		}
	}
	sum := sha256.Sum256([]byte(s))
	hash := "imported-" + hex.EncodeToString(sum[:8])
	kept = strings.Trim(kept, " /")
	if kept == "" {
		return hash
	}
	kept = strings.TrimSpace(strings.ToValidUTF8(kept[:min(len(kept), max-len(hash)-1)], ""))
	return kept + "-" + hash
}

// NewID returns a new id. Ids sort by their time of creation.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// BatchRef names a batch of replays of a tenant.
type BatchRef struct {
	Tenant string
	ID     string
}

// DefaultTenant owns everything while no API keys are configured.
const DefaultTenant = "default"

// ConversationRef names a conversation. Methods that take one see only that tenant's rows: another tenant's id is
// ErrNotFound, like one that does not exist.
type ConversationRef struct {
	Tenant string
	ID     string
}

func (r ConversationRef) String() string { return fmt.Sprintf("%s/%s", r.Tenant, r.ID) }

// RunRef names a run of a tenant.
type RunRef struct {
	Tenant string
	ID     string
}

func (r RunRef) String() string { return fmt.Sprintf("%s/%s", r.Tenant, r.ID) }
