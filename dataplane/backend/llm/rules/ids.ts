import { createHash } from 'node:crypto'
import { splitThought } from '../common/thoughts.ts'
import type { IdRule } from './types.ts'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const LENGTH = 24

/**
 * Ids of the tool calls of one conversation as a target accepts them. The same id gives the same replacement in every request, so that the history stays
 * as it was. Marks that the gateway added (thoughts.ts) are removed.
 */
export class CallIds {
  readonly #rule: IdRule
  /** The client's id -> those of its calls without result yet, and that of the latest. */
  readonly #open = new Map<string, { readonly waiting: string[]; latest: string }>()
  readonly #used = new Set<string>()

  constructor(rule: IdRule) {
    this.#rule = rule
  }

  /** The id of a call. A second call with the id gets another, if the target demands it. */
  call(id: string): string {
    let fitted = fitId(id, this.#rule)
    if (this.#rule.isUnique) {
      for (let count = 2; this.#used.has(fitted); count++) fitted = replace(`${id}\n${count}`, this.#rule)
      this.#used.add(fitted)
    }
    const { id: own } = splitThought(id)
    const open = this.#open.get(own)
    if (open === undefined) this.#open.set(own, { waiting: [fitted], latest: fitted })
    else {
      open.waiting.push(fitted)
      open.latest = fitted
    }
    return fitted
  }

  /** The id of the call that a result belongs to. Results of calls with one id have the order of the calls. */
  result(id: string): string {
    const open = this.#open.get(splitThought(id).id)
    return open === undefined ? fitId(id, this.#rule) : (open.waiting.shift() ?? open.latest)
  }
}

function fitId(id: string, rule: IdRule): string {
  const { id: own } = splitThought(id)
  return rule.pattern.test(own) ? own : replace(own, rule)
}

function replace(id: string, { max }: IdRule): string {
  const bytes = createHash('sha256').update(id).digest()
  let text = ''
  for (let at = 0; at < Math.min(max, LENGTH); at++) text += ALPHABET[(bytes[at] ?? 0) % ALPHABET.length]
  return text
}
