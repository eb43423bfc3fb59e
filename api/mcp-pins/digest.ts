import { createHash } from 'node:crypto'
import { isJsonObject, type JsonObject } from '../json/index.ts'

/** SHA-256 of each part of a tool, in hex. */
export interface ToolDigests {
  /** Title, description and annotations. */
  readonly description: string
  /** The input schema. */
  readonly input: string
  /** The output schema. */
  readonly output: string
}

/** Digests of the parts of a tool. Neither the order of members nor unknown members of the tool matter. */
export function digestTool({ title, description, annotations, inputSchema, outputSchema }: JsonObject): ToolDigests {
  return { description: digest([title, description, annotations]), input: digest(inputSchema), output: digest(outputSchema) }
}

const digest = (value: unknown): string => createHash('sha256').update(canonical(value)).digest('hex')

/** JSON with sorted members. Absent values are null. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isJsonObject(value)) return JSON.stringify(value ?? null)
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort((a, b) => (a < b ? -1 : 1))
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
  return `{${members.join(',')}}`
}
