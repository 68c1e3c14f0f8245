// Package archtest holds the arrows between the packages: who may import whom. It has no code, only a test.
package archtest
