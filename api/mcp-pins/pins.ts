import { isJsonObject } from '../json/index.ts'
import type { ToolDigests } from './digest.ts'

/** Pins of the tools of all targets: by target, then by name on the server. */
export type Pins = ReadonlyMap<string, ReadonlyMap<string, ToolDigests>>

export type ToolPart = keyof ToolDigests
const PARTS: readonly ToolPart[] = ['description', 'input', 'output']
const DIGEST = /^[0-9a-f]{64}$/
const MAX_LENGTH = 4 * 1024 * 1024

/** Parses the document of pins; returns an error text if it is not one. An empty text has no pins. */
export function parsePins(text: string): Pins | string {
  if (text.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`
  let document: unknown
  try {
    document = text.trim() === '' ? {} : JSON.parse(text)
  } catch {
    return 'is not JSON; write it with proxyctl mcp approve'
  }
  if (!isJsonObject(document)) return 'is not a JSON object of targets'
  const pins = new Map<string, ReadonlyMap<string, ToolDigests>>()
  for (const [target, tools] of Object.entries(document)) {
    if (!isJsonObject(tools)) return `has no object of tools at ${JSON.stringify(target)}`
    const known = new Map<string, ToolDigests>()
    for (const [name, digests] of Object.entries(tools)) {
      const bad = PARTS.find((part) => !isJsonObject(digests) || typeof digests[part] !== 'string' || !DIGEST.test(digests[part]))
      if (bad !== undefined) return `has no SHA-256 in hex at ${JSON.stringify(target)}, ${JSON.stringify(name)}, ${bad}`
      known.set(name, digests as ToolDigests)
    }
    pins.set(target, known)
  }
  return pins
}

/** The document of pins, with sorted members. */
export function printPins(pins: Pins): string {
  const sorted = <T>(map: ReadonlyMap<string, T>): [string, T][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
  const targets = sorted(pins).map(([target, tools]) => [
    target,
    Object.fromEntries(sorted(tools).map(([name, { description, input, output }]) => [name, { description, input, output }])),
  ])
  return `${JSON.stringify(Object.fromEntries(targets), null, 1)}\n`
}

/** The parts in which a tool differs from its pin. */
export const changedParts = (pinned: ToolDigests, digests: ToolDigests): ToolPart[] => PARTS.filter((part) => pinned[part] !== digests[part])
