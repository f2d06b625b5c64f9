package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func readJSON[T any](name string) (value T, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return value, err
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return value, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

func writeJSON(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
