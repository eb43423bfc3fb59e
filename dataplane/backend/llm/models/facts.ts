import { evalBool, evalKey, fromJson, readsMember, type Program, type Stored } from '#api/cel/index.ts'
import { promptTokensOf } from '../accounting/prompt.ts'
import { modalitiesOf, type Modality } from '../common/modalities.ts'
import { isObject } from '../common/json.ts'
import { inside, numberOf } from '../common/read.ts'
import type { ClientFormat, JsonObject } from '../common/types.ts'
import { DEFAULT_OUTPUT_TOKENS } from '../../../request/exchange/token-budgets.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { variables } from '../../../request/exchange/variables.ts'
import { ExchangeView } from '../../../request/expression/view.ts'

/** What the rules and the choice of a model know about a request. Each fact is computed when it is first read. */
export class ModelFacts {
  readonly #body: JsonObject
  readonly #format: ClientFormat | undefined
  readonly #length: number
  #promptTokens: number | undefined
  #modalities: ReadonlySet<Modality> | undefined
  #stored: Stored

  /** `format`: undefined if the body is not interpreted. `length` is that of its text. */
  constructor(body: JsonObject, format: ClientFormat | undefined, length: number) {
    this.#body = body
    this.#length = length
    this.#format = format
  }

  get promptTokens(): number {
    return (this.#promptTokens ??= promptTokensOf(this.#body, this.#format !== undefined))
  }

  /** Whether the prompt has more tokens. Most are so short that they need not be counted: only media have more tokens than characters. */
  exceeds(tokens: number): boolean {
    return (this.#length > tokens || this.modalities.size > 1 || !this.modalities.has('text')) && this.promptTokens > tokens
  }

  get modalities(): ReadonlySet<Modality> {
    return (this.#modalities ??= modalitiesOf(this.#body))
  }

  get hasTools(): boolean {
    return [this.#body['tools'], this.#body['functions']].some((list) => Array.isArray(list) && list.length > 0)
  }

  /** Whether the response must fit a schema. */
  get isStructured(): boolean {
    const { response_format: completions, text: responses, output_config: messages, output_format: older } = this.#body
    const { responseSchema, responseJsonSchema } = inside(this.#body['generationConfig'])
    if (isObject(responseSchema) || isObject(responseJsonSchema)) return true
    return [completions, inside(responses)['format'], inside(messages)['format'], older].some((format) => inside(format)['type'] === 'json_schema')
  }

  /** Most tokens of a response; a default if the request has no limit. */
  get outputTokens(): number {
    const { max_completion_tokens: completions, max_tokens: most, max_output_tokens: responses } = this.#body
    const { maxOutputTokens: gemini } = inside(this.#body['generationConfig'])
    return numberOf(completions) ?? numberOf(most) ?? numberOf(responses) ?? numberOf(gemini) ?? DEFAULT_OUTPUT_TOKENS
  }

  /** The body, for `llmRequest`. */
  get stored(): Stored {
    return (this.#stored ??= fromJson(this.#body))
  }
}

/** Evaluates an expression of a model with `llmRequest`, which is built for those that read it only: bodies are large. */
function withRequest<T>(exchange: Exchange, facts: ModelFacts, program: Program, evaluate: (program: Program, view: object) => T): T {
  if (readsMember(program, 'llmRequest')) variables.llmRequest.set(exchange, facts.stored)
  try {
    return evaluate(program, new ExchangeView(exchange))
  } finally {
    variables.llmRequest.set(exchange, undefined)
  }
}

/** Whether a condition holds; one that fails does not. */
export const holds = (exchange: Exchange, facts: ModelFacts, program: Program): boolean => withRequest(exchange, facts, program, evalBool)

/** The value that a choice sticks to; undefined: null, empty or an error. */
export const stickyKey = (exchange: Exchange, facts: ModelFacts, program: Program): string | undefined =>
  withRequest(exchange, facts, program, evalKey) || undefined
