const MARK = '__thought__'

/**
 * Ids of tool calls carry Gemini's thought signature to the client and back: CC has no other place for it, and Gemini 3 refuses
 * a history of calls without (llm.md §7.11).
 */
export function writeCallId(response: string, count: number, signature: string | undefined): string {
  return `call_${response}_${count}${signature === undefined ? '' : MARK + signature}`
}

export function readSignature(id: string): string | undefined {
  const at = id.indexOf(MARK)
  return at === -1 ? undefined : id.slice(at + MARK.length)
}
