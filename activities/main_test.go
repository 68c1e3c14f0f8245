package activities_test

import (
	"os"
	"testing"

	"precis/internal/testkit/stacktest"
)

func TestMain(m *testing.M) { os.Exit(stacktest.Main{M: m}.Run()) }
