import type { Stored, Secret } from '#api/cel/index.ts'
import { defineSlot, type Slot } from './slot.ts'

/** Claims of an accepted token; `rawToken` is the token itself. */
export type JwtVariable = Readonly<Record<string, unknown>> & { readonly rawToken?: Secret }

/** Metadata of an accepted API key; `key` is the key itself. */
export type ApiKeyVariable = Readonly<Record<string, unknown>> & { readonly key?: Secret }

/** `mcp` of expressions; each field is set when the request reaches the point where it is known (mcp.md §10). */
export interface McpVariables {
  methodName?: string
  sessionId?: string
  tool?: Record<string, unknown>
  prompt?: Record<string, unknown>
  resource?: Record<string, unknown>
  task?: Record<string, unknown>
}

/** `a2a` of expressions (mcp.md §14). */
export interface A2aVariables {
  readonly method?: string
}

type Fields = Readonly<Record<string, unknown>>

/**
 * Variables of expressions that policies and backend services set on the exchange (traffic.md §9). The key is the name of the
 * variable in expressions.
 */
export const variables = {
  jwt: defineSlot<JwtVariable>('jwt'),
  apiKey: defineSlot<ApiKeyVariable>('apiKey'),
  basicAuth: defineSlot<{ readonly username: string }>('basicAuth'),
  extauthz: defineSlot<Fields>('extauthz'),
  extproc: defineSlot<Fields>('extproc'),
  metadata: defineSlot<Fields>('metadata'),
  mcpGuardrails: defineSlot<Fields>('mcpGuardrails'),
  /** Facts about the LLM request and response; a lazy map. */
  llm: defineSlot<object>('llm'),
  /** The LLM request body while field transformations are evaluated. */
  llmRequest: defineSlot<unknown>('llmRequest'),
  mcp: defineSlot<McpVariables>('mcp'),
  a2a: defineSlot<A2aVariables>('a2a'),
} as const satisfies Readonly<Record<string, Slot<Stored>>>

const slots = new Map<string, Slot<Stored>>(Object.entries(variables))

/** Names of all variables, in the order in which `keys` of an expression lists them. */
export const variableNames: readonly string[] = [...slots.keys()]

/** The slot of a variable; undefined if no variable has the name. */
export const variableNamed = (name: string): Slot<Stored> | undefined => slots.get(name)
