const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Longer values of `id` are not kept. */
const MAX_ID_CHARS = 1024

/** Reads the kind and the id of a JSON-RPC message that is too large to be parsed, from parts of its text. Keeps no other content. */
export class MessageOutline {
  /** The message has a member `method`: it is a request or a notification. */
  hasMethod = false
  /** The value of `id` as JSON; undefined until it was read. */
  id: string | undefined
  #depth = 0
  #isString = false
  #isEscaped = false
  /** A name is expected at the top level, instead of a value. */
  #isName = false
  /** Name or value at the top level, while it is read. Undefined if it is not needed. */
  #token: string | undefined
  #isId = false

  push(text: string): void {
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.#isString) at = this.#readString(text, at)
      else if (code === QUOTE) {
        this.#isString = true
        if (this.#depth === 1 && this.#isName) this.#token = ''
        else if (this.#token !== undefined && this.#isId) this.#token += '"'
      } else this.#readOther(text, at, code)
    }
  }

  /** Reads up to the end of the string or of the text, and returns the position of the last character read. */
  #readString(text: string, start: number): number {
    let at = start
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.#isEscaped) this.#isEscaped = false
      else if (code === BACKSLASH) this.#isEscaped = true
      else if (code === QUOTE) break
    }
    const isEnd = at < text.length
    this.#keep(text.slice(start, at))
    if (!isEnd) return at
    this.#isString = false
    if (this.#depth === 1 && this.#isName) this.#endName()
    else if (this.#isId) this.#keep('"')
    return at
  }

  #readOther(text: string, at: number, code: number): void {
    switch (code) {
      case 0x7b: // {
      case 0x5b: // [
        if (++this.#depth === 1) this.#isName = true
        return
      case 0x7d: // }
      case 0x5d: // ]
        if (this.#depth-- === 1) this.#endValue()
        return
      case 0x2c: // ,
        if (this.#depth !== 1) return
        this.#endValue()
        this.#isName = true
        return
      case 0x3a: // :
        return
      default:
        if (this.#isId && this.#depth === 1) this.#keep(text[at] ?? '')
    }
  }

  #keep(text: string): void {
    if (this.#token === undefined) return
    if (this.#token.length + text.length <= MAX_ID_CHARS) this.#token += text
    else this.#token = undefined
  }

  #endName(): void {
    const name = this.#token === undefined ? '' : unescape(this.#token)
    this.#isName = false
    this.#isId = name === 'id'
    this.#token = this.#isId ? '' : undefined
    if (name === 'method') this.hasMethod = true
  }

  #endValue(): void {
    if (this.#isId && this.#token !== undefined) this.id = this.#token.trim()
    this.#isId = false
    this.#token = undefined
  }
}

/** The name in a JSON string; '' if it is invalid. */
function unescape(text: string): string {
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return ''
  }
}
