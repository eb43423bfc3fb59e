import { readsMember, type Program } from '#api/cel/index.ts'
import type { McpLimit, McpStage } from '../../request/exchange/mcp-limits.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import type { Allowance, Budget } from './bucket.ts'
import { tighter } from './local.ts'

const ITEMS = ['tool', 'prompt', 'resource'] as const satisfies readonly McpStage[]

/**
 * The stages of an MCP request at which expressions are evaluated; empty if none reads `mcp`. An expression that reads a kind of items is
 * evaluated for requests that use one, so that handshakes and lists do not count.
 */
export function stagesOf(programs: readonly Program[]): readonly McpStage[] {
  const reading = programs.filter((program) => readsMember(program, 'mcp') && !program.reads.has('*'))
  if (reading.length === 0) return []
  const items = ITEMS.filter((item) => reading.some(({ reads }) => reads.has(`mcp.${item}`)))
  if (items.length > 0) return items
  // `mcp["tool"]` and `mcp` itself can be any of them.
  const isOpen = reading.some(({ reads }) => ![...reads].some((path) => path.startsWith('mcp.')))
  return isOpen ? ITEMS : ['message']
}

/** An entry whose key or condition reads `mcp`. */
export interface McpEntry {
  readonly stages: readonly McpStage[]
  /** The budget for a request; undefined if the entry does not apply to it. */
  budgetOf(view: ExchangeView): Budget | undefined
}

/** The entries of one policy for one request, charged by MCP backends. */
export class LocalMcpLimit implements McpLimit {
  readonly #exchange: Exchange
  readonly #entries: readonly McpEntry[]
  readonly #charge: (budgets: readonly Budget[]) => Allowance | undefined
  /** The tightest allowance; undefined if nothing was charged. */
  allowance: Allowance | undefined = undefined

  constructor(exchange: Exchange, entries: readonly McpEntry[], charge: (budgets: readonly Budget[]) => Allowance | undefined) {
    this.#exchange = exchange
    this.#entries = entries
    this.#charge = charge
  }

  charge(stage: McpStage): void {
    const charged = this.#entries.filter(({ stages }) => stages.includes(stage))
    if (charged.length === 0) return
    const view = new ExchangeView(this.#exchange)
    this.allowance = tighter(this.allowance, this.#charge(charged.flatMap((entry) => entry.budgetOf(view) ?? [])))
  }
}
