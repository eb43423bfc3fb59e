/** Follows JSON text that arrives in pieces: whether it is one complete object. Each character is read once. */
export class ObjectProgress {
  #depth = 0
  #inString = false
  #isEscaped = false
  #isComplete = false

  /** Whether the text so far is a complete object, as far as its brackets tell. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  add(text: string): void {
    for (let at = 0; at < text.length && !this.#isComplete; at++) {
      const code = text.charCodeAt(at)
      if (this.#isEscaped) this.#isEscaped = false
      else if (this.#inString) {
        if (code === BACKSLASH) this.#isEscaped = true
        else if (code === QUOTE) this.#inString = false
      } else if (code === QUOTE) this.#inString = true
      else if (code === OPEN_BRACE || code === OPEN_BRACKET) this.#depth++
      else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) this.#isComplete = --this.#depth === 0
    }
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
