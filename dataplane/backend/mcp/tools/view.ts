import { evalJson, type Program } from '#api/cel/index.ts'
import type { McpTools, McpToolOverride } from '#gen/config/types.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { compileExpression } from '../../../request/expression/program.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { fold } from '../message/names.ts'
import { INTERNAL_ERROR, INVALID_PARAMS } from '../message/rpc.ts'
import { compilePatterns } from './pattern.ts'
import { withoutProperties } from './schema.ts'

/** How clients see the tools of one target (mcp.md §4.5). Names are without the prefix of the target. */
export interface ToolView {
  /** Name for clients of a tool of the server; undefined if the tool is not offered. */
  shownName(name: string): string | undefined
  /** Why a tool of the server is not offered, for traces. */
  explain(name: string): string
  /** Name on the server of a tool that clients see; undefined if there is none. The tool may not exist. */
  serverName(shown: string): string | undefined
  /** A tool of the server's list with the name, description and input schema for clients; undefined if it is not offered. */
  show(tool: JsonObject, name: string): JsonObject | undefined
  /** The arguments of a call as the server receives them. Throws a McpFailure. `name` is that on the server. */
  argumentsOf(name: string, given: unknown, exchange: Exchange): unknown
}

interface Override {
  readonly shown: string
  readonly description: string | undefined
  readonly fixed: readonly FixedArgument[]
  readonly fixedNames: ReadonlySet<string>
}

interface FixedArgument {
  readonly name: string
  readonly folded: string
  readonly value: unknown
  /** Takes the place of the value. */
  readonly program: Program | undefined
}

/** Compiles the field `tools` of a target. */
export function compileToolView({ include, exclude = [], overrides = [] }: McpTools): ToolView {
  const included = include === undefined ? () => true : compilePatterns(include)
  const excluded = compilePatterns(exclude)
  const byName = new Map(overrides.map((override) => [override.name, compileOverride(override)]))
  const byShown = new Map<string, string | undefined>()
  // Two tools with one name could not be distinguished: neither is offered.
  for (const [name, { shown }] of byName) byShown.set(shown, byShown.has(shown) ? undefined : name)
  const shownName = (name: string): string | undefined => {
    if (!included(name) || excluded(name)) return undefined
    const shown = byName.get(name)?.shown ?? name
    return byShown.has(shown) && byShown.get(shown) !== name ? undefined : shown
  }
  return {
    shownName,
    explain: (name) => {
      if (!included(name)) return 'no pattern of tools.include of the target matches'
      return excluded(name) ? 'a pattern of tools.exclude of the target matches' : 'tools.overrides of the target give its name to another tool'
    },
    serverName(shown) {
      const name = byShown.has(shown) ? byShown.get(shown) : shown
      return name !== undefined && shownName(name) === shown ? name : undefined
    },
    show(tool, name) {
      const shown = shownName(name)
      if (shown === undefined) return undefined
      const override = byName.get(name)
      return override === undefined ? tool : changed(tool, shown, override)
    },
    argumentsOf(name, given, exchange) {
      const override = byName.get(name)
      return override === undefined || override.fixed.length === 0 ? given : withFixed(given, override, exchange)
    },
  }
}

function compileOverride({ name, rename, description, arguments: constants = {}, computedArguments = {} }: McpToolOverride): Override {
  // Computed values come last, because they are stronger.
  const fixed: FixedArgument[] = [
    ...Object.entries(constants).map(([argument, value]) => ({ name: argument, folded: fold(argument), value, program: undefined })),
    ...Object.entries(computedArguments).map(([argument, expression]) => ({
      name: argument,
      folded: fold(argument),
      value: undefined,
      program: compileExpression(expression, 'request'),
    })),
  ]
  return { shown: rename ?? name, description, fixed, fixedNames: new Set(fixed.map((argument) => argument.name)) }
}

function changed(tool: JsonObject, shown: string, { description, fixedNames }: Override): JsonObject {
  return {
    ...tool,
    name: shown,
    ...(description === undefined ? {} : { description }),
    ...(fixedNames.size === 0 ? {} : { inputSchema: withoutProperties(tool['inputSchema'], fixedNames) }),
  }
}

function withFixed(given: unknown, { fixed, fixedNames }: Override, exchange: Exchange): JsonObject {
  if (given !== undefined && !isObject(given)) throw McpFailure.rpc(INVALID_PARAMS, 'params.arguments must be an object')
  const result: JsonObject = { ...given }
  // Some JSON libraries read `Owner` as `owner`: the server must see the fixed value.
  const variant = Object.keys(result).find((key) => !fixedNames.has(key) && fixed.some(({ folded }) => folded === fold(key)))
  if (variant !== undefined) throw McpFailure.rpc(INVALID_PARAMS, `params.arguments has ${variant}, which the gateway sets in another spelling: remove it`)
  for (const { name, value, program } of fixed) {
    const used = program === undefined ? value : evalJson(program, new ExchangeView(exchange))
    if (used === undefined)
      throw McpFailure.rpc(INTERNAL_ERROR, 'the gateway could not compute an argument of the tool', { detail: `the expression of argument ${name} failed` })
    Object.defineProperty(result, name, { value: used, enumerable: true, configurable: true, writable: true })
  }
  return result
}
