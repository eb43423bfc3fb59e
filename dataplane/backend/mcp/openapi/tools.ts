import type { OpenApiTool, ResolvedMcpOpenApi } from '#gen/config/types.ts'
import type { Program } from '#api/cel/index.ts'
import { compileExpression } from '../../../request/expression/program.ts'
import { isObject, parseJson, type JsonObject } from '../message/json.ts'
import { SchemaValidator } from '../schema/validator.ts'

/** A tool with its validators, which are created when they are first used. */
export class ApiTool {
  readonly operation: OpenApiTool
  #definition: JsonObject | undefined
  #input: SchemaValidator | undefined
  #output: SchemaValidator | undefined

  /** Computes results; undefined: results are the responses of the API. */
  readonly response: Program | undefined

  constructor(operation: OpenApiTool, response?: Program) {
    this.operation = operation
    this.response = response
  }

  get input(): SchemaValidator {
    return (this.#input ??= new SchemaValidator(this.inputSchema))
  }

  get inputSchema(): JsonObject {
    return this.#schema('inputSchema') ?? {}
  }

  /** Undefined if the tool has no output schema. */
  get output(): SchemaValidator | undefined {
    const schema = this.response === undefined ? this.#schema('outputSchema') : undefined
    return schema && (this.#output ??= new SchemaValidator(schema))
  }

  #schema(member: 'inputSchema' | 'outputSchema'): JsonObject | undefined {
    const parsed = (this.#definition ??= parseJson(this.operation.definition) as JsonObject)
    const schema = parsed[member]
    return isObject(schema) ? schema : undefined
  }
}

/** The tools of an API. */
export interface CompiledApi {
  readonly tools: ReadonlyMap<string, ApiTool>
  /** The result of `tools/list`, in JSON. */
  readonly list: string
}

/** Computed results do not have the schema of the document. */
function withoutOutputSchema(definition: string): string {
  const { outputSchema: _, ...tool } = parseJson(definition) as JsonObject
  return JSON.stringify(tool)
}

const known = new WeakMap<ResolvedMcpOpenApi, CompiledApi>()

/** Compiles the tools of an API, once per version of them. */
export function compileApi(api: ResolvedMcpOpenApi): CompiledApi {
  let compiled = known.get(api)
  if (compiled === undefined) {
    const response = api.response === undefined ? undefined : compileExpression(api.response, 'response')
    const tools = new Map(api.tools.map((operation) => [operation.name, new ApiTool(operation, response)]))
    const definitions = api.tools.map(({ definition }) => (response === undefined ? definition : withoutOutputSchema(definition)))
    known.set(api, (compiled = { tools, list: `{"tools":[${definitions.join(',')}]}` }))
  }
  return compiled
}
