package pipeline

import "math"

// measure sets Used and the fields that explain it.
func (d *TriggerDecision) measure(in TriggerInput) {
	figure, covered := max(in.ServerTokens, 0), max(in.EstimateServerPart, 0)
	all := max(in.EstimateAll, 0)
	earlier := clampRatio(in.Calibration)

	tooHigh := figure > d.Window && float64(figure) > implausibleFactor*float64(max(covered, 1))
	if figure > 0 && !tooHigh {
		d.Calibration = ratio(figure, covered)
	}
	if d.Calibration == 0 {
		d.Calibration = earlier
	}

	if figure > 0 && !in.ServerStale && !tooHigh {
		since := max(all-covered, 0)
		used := figure + scale(since, d.Calibration)
		if all > d.Window && float64(used) < truncatedShare*float64(all) {
			// The server counted what it kept of the prompt, not what was sent.
			d.Implausible = true
			d.Calibration = earlier
			d.Estimate = scale(all, earlier)
			d.Used, d.Estimated = max(used, d.Estimate), true
			return
		}
		d.Estimate = scale(all, d.Calibration)
		d.Used = used
		return
	}
	d.Implausible = tooHigh && !in.ServerStale
	d.Estimate = scale(all, d.Calibration)
	d.Used, d.Estimated = d.Estimate, true
}

// ratio returns the calibration that one real figure gives, 0 if it gives none.
func ratio(figure, estimate int) float64 {
	if figure <= 0 || estimate < calibrationMinTokens {
		return 0
	}
	return clampRatio(float64(figure) / float64(estimate))
}

func clampRatio(r float64) float64 {
	if !(r > 0) || math.IsInf(r, 1) {
		return 0
	}
	return min(max(r, calibrationMin), calibrationMax)
}

// Real returns a local estimate scaled by the decision's calibration, in tokens.
func (d TriggerDecision) Real(estimate int) int { return scale(estimate, d.Calibration) }

// scale applies a calibration; 0 means none.
func scale(tokens int, calibration float64) int {
	if calibration == 0 {
		return tokens
	}
	return int(math.Round(float64(tokens) * calibration))
}
