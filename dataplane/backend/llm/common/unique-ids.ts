/**
 * Ids of the tool calls of one response. Some servers give parallel calls one id, or none; clients find the call of a result by its id, and Claude rejects a
 * history with an id twice.
 */
export class UniqueIds {
  readonly #used = new Set<string>()

  /** The id, with a number if an earlier call has it. */
  of(id: string): string {
    let unique = id === '' ? `tool_call_${this.#used.size}` : id
    for (let count = 2; this.#used.has(unique); count++) unique = `${id}_${count}`
    this.#used.add(unique)
    return unique
  }
}
