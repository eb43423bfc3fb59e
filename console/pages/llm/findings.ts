import type { TryResult } from '#api/management/requests.ts'

type Steps = NonNullable<TryResult['trace']>['steps']

/** What one guard did. */
export interface Finding {
  readonly phase: string
  /** Kind of guard; a regex guard with what it looks for. */
  readonly guard: string
  readonly decision: 'passed' | 'masked' | 'rejected'
  /** Where it matched; empty for guards that call a service. */
  readonly hits: readonly Hit[]
}

/** Positions in UTF-16 units. */
export interface Hit {
  readonly label: string
  readonly start: number
  readonly end: number
  /** Number of the text in the request, from 1. */
  readonly text: number
}

/** The guards of a traced request, in the order in which they ran. */
export function listFindings(steps: Steps): Finding[] {
  return steps.flatMap(({ name, detail = {} }) => {
    const [, phase, guard] = /^prompt guard, (\w+): (.*)$/s.exec(name) ?? []
    if (phase === undefined || guard === undefined) return []
    const decision = detail['refused'] !== undefined ? 'rejected' : detail['masked'] === true ? 'masked' : 'passed'
    return [{ phase, guard, decision, hits: readHits(String(detail['found'] ?? '')) }]
  })
}

const readHits = (found: string): Hit[] =>
  [...found.matchAll(/([\w-]+) at (\d+)-(\d+) of text (\d+)/g)].map(([, label = '', start, end, text]) => ({
    label,
    start: Number(start),
    end: Number(end),
    text: Number(text),
  }))

/**
 * Positions in the text that was sent. Those of a finding are positions in the text that the guards before it have masked: each hit is
 * `<LABEL>` there.
 */
export function toOriginal(findings: readonly Finding[]): Hit[] {
  const found: Hit[] = []
  /** What is masked, in the text that was sent, in order. */
  let masked: Hit[] = []
  for (const { decision, hits } of findings) {
    const moved = hits.map((hit) => ({ ...hit, start: moveBack(hit.start, masked), end: moveBack(hit.end, masked) }))
    found.push(...moved)
    if (decision === 'masked') masked = [...masked, ...moved].toSorted((a, b) => a.start - b.start)
  }
  return found
}

/** The position in a text that is `at` in the text with masks. */
function moveBack(at: number, masked: readonly Hit[]): number {
  let shift = 0
  for (const { start, end, label } of masked) {
    const length = label.length + '<>'.length
    if (at <= start + shift) break
    if (at < start + shift + length) return end
    shift += length - (end - start)
  }
  return at - shift
}

/** A piece of a text; `label` if guards matched it. */
export interface Piece {
  readonly text: string
  readonly label: string | undefined
}

/** Cuts a text at hits. Of hits that overlap the first counts. */
export function cutAtHits(text: string, hits: readonly Hit[]): Piece[] {
  const pieces: Piece[] = []
  let at = 0
  for (const { start, end, label } of hits.toSorted((a, b) => a.start - b.start)) {
    if (start < at || end > text.length) continue
    if (start > at) pieces.push({ text: text.slice(at, start), label: undefined })
    pieces.push({ text: text.slice(start, end), label })
    at = end
  }
  return at < text.length || pieces.length === 0 ? [...pieces, { text: text.slice(at), label: undefined }] : pieces
}
