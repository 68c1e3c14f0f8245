package pipeline

import "math"

// estimateImage returns the number of tokens of an image of width × height pixels: the larger of what Anthropic and
// OpenAI document, since an estimate that is too low costs more than one that is too high. Anthropic scales to 1,568
// pixels on the long edge and 1.15 megapixels, and counts width × height / 750; OpenAI scales to 2,048 pixels on the
// long edge and 768 on the short one, and counts 85, and 170 for each tile of 512 × 512. A size below one pixel means
// unknown, and counts as a large image.
func estimateImage(width, height int) int {
	if width < 1 || height < 1 {
		return imageTokens
	}
	w, h := float64(width), float64(height)
	return max(anthropicImage(w, h), openAIImage(w, h))
}

func anthropicImage(w, h float64) int {
	scale := min(1, 1568/max(w, h))
	pixels := min(w*h*scale*scale, 1.15e6)
	return int(math.Round(pixels / 750))
}

func openAIImage(w, h float64) int {
	scale := min(1, 2048/max(w, h))
	scale = min(scale, 768/min(w, h))
	tiles := func(edge float64) int { return max(1, int(math.Ceil(edge*scale/512-1e-9))) }
	return 85 + 170*tiles(w)*tiles(h)
}
