/** Separates the id of a tool call from the thought signature of Gemini, for clients whose format has no field for it (llm.md §7.11). */
const MARK = '__thought__'

/** The signature that Gemini accepts for calls of other models (ai.google.dev/gemini-api/docs/thought-signatures). */
export const NO_THOUGHT = 'skip_thought_signature_validator'

/** Adds a thought signature to the id of a tool call. */
export function joinThought(id: string, thought: string | undefined): string {
  return thought === undefined ? id : `${id}${MARK}${thought}`
}

/** Splits an id into that of the upstream and the thought signature, if there is one. */
export function splitThought(id: string): { id: string; thought?: string } {
  const at = id.indexOf(MARK)
  return at === -1 ? { id } : { id: id.slice(0, at), thought: id.slice(at + MARK.length) }
}
