package store_test

import (
	"testing"

	"go.uber.org/goleak"

	"precis/internal/testkit/stacktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(stacktest.Main{M: m}) }
