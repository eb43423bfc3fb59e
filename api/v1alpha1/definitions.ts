import type { Definitions } from '../schema.ts'

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const

/** Every named definition of the three kinds. */
export const definitions: Definitions = { Frontend: open, Traffic: open, BackendFull: open, AIBackend: open, MCPBackend: open, CloudBackend: open }
