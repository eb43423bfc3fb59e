import { demand, demandHeader, KEY, Violation, type Asked, type Vendor } from './api.ts'
import { checkTurns, completionsApi } from './completions.ts'
import { checkItems, responsesApi } from './responses.ts'
import { listOf, objectOf, textOf, type Json } from './script.ts'

/** OpenAI, and a server of another vendor that implements its API. */

const MODEL = 'gpt-5.5'

/** Strict schemas: every object is closed and requires all of its properties. */
function checkStrict(schema: Json, place: string): void {
  if (schema['type'] === 'object') {
    demand(schema['additionalProperties'] === false, `Invalid schema for ${place}: 'additionalProperties' is required to be supplied and to be false.`)
    const required = new Set(Array.isArray(schema['required']) ? schema['required'] : [])
    for (const name of Object.keys(objectOf(schema['properties'])))
      demand(
        required.has(name),
        `Invalid schema for ${place}: 'required' is required to be supplied and to be an array including every key in properties. Missing '${name}'.`,
      )
  }
  for (const child of Object.values(schema)) {
    if (Array.isArray(child)) for (const one of listOf(child)) checkStrict(one, place)
    else checkStrict(objectOf(child), place)
  }
}

function checkFunction({ name, parameters, strict }: Json, place: string): void {
  demand(/^[a-zA-Z0-9_-]{1,64}$/.test(textOf(name)), `Invalid '${place}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.`)
  const schema = objectOf(parameters)
  demand(schema['type'] !== 'object' || schema['properties'] !== undefined, `Invalid schema for function '${textOf(name)}': object schema missing properties.`)
  if (strict === true) checkStrict(schema, `function '${textOf(name)}'`)
}

function checkFormat(format: Json): void {
  if (format['type'] !== 'json_schema') return
  const { name, schema, strict } = { ...format, ...objectOf(format['json_schema']) } as Json
  demand(/^[a-zA-Z0-9_-]{1,64}$/.test(textOf(name)), `Invalid 'response_format.json_schema.name'`)
  if (strict === true) checkStrict(objectOf(schema), 'response_format')
}

function checkCompletions(asked: Asked): void {
  const { body } = asked
  demand(body['model'] === MODEL, `The model \`${textOf(body['model'])}\` does not exist`)
  demand(body['max_tokens'] === undefined, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
  for (const field of ['temperature', 'top_p'])
    demand(
      body[field] === undefined || body[field] === 1,
      `Unsupported value: '${field}' does not support ${String(body[field])} with this model. Only the default (1) value is supported.`,
    )
  demand(body['stop'] === undefined, "Unsupported parameter: 'stop' is not supported with this model.")
  checkTurns(asked)
  for (const [at, { function: called }] of listOf(body['tools']).entries()) checkFunction(objectOf(called), `tools[${at}].function`)
  checkFormat(objectOf(body['response_format']))
  for (const [at, message] of listOf(body['messages']).entries())
    for (const { id } of listOf(message['tool_calls']))
      demand(textOf(id).length <= 40, `Invalid 'messages[${at}].tool_calls[0].id': string too long. Expected a string with maximum length 40`)
  const hasTools = listOf(body['tools']).length > 0
  // BerriAI/litellm#34569
  if (hasTools && body['reasoning_effort'] !== 'none')
    throw new Violation(`limit: Function tools with reasoning_effort are not supported for ${MODEL} in /v1/chat/completions. Please use /v1/responses instead.`)
}

function checkResponses(asked: Asked): void {
  const { body } = asked
  demand(body['model'] === MODEL, `The model \`${textOf(body['model'])}\` does not exist`)
  for (const field of ['temperature', 'top_p'])
    demand(body[field] === undefined || body[field] === 1, `Unsupported parameter: '${field}' is not supported with this model.`)
  checkItems(asked)
  for (const [at, tool] of listOf(body['tools']).entries()) if (tool['type'] === 'function') checkFunction(tool, `tools[${at}]`)
  checkFormat(objectOf(objectOf(body['text'])['format']))
}

const error: Vendor['error'] = (status, message) => ({
  body: {
    error: {
      message,
      type: status === 429 ? 'rate_limit_exceeded' : 'invalid_request_error',
      param: null,
      code: status === 429 ? 'rate_limit_exceeded' : null,
    },
  },
})

export const openai: Vendor = {
  name: 'OpenAI',
  model: MODEL,
  authenticate: (request) => demandHeader(request, 'authorization', `Bearer ${KEY}`),
  error,
  apis: [
    completionsApi(
      /^\/v1\/chat\/completions$/,
      { model: MODEL, newId: (at) => `call_${String(at).padStart(24, 'x')}` },
      { schema: ({ body }) => ({ kind: 'completions', body }), check: checkCompletions },
    ),
    responsesApi({ schema: ({ body }) => ({ kind: 'responses', body }), check: checkResponses }),
  ],
}

const OPEN = 'qwen3-vl-235b-a22b-thinking'

/** vLLM with a thinking model: knows no role `developer`, ignores fields that it does not know, and sends ids with dots and colons. */
export const compatible: Vendor = {
  name: 'OpenAI-compatible',
  model: OPEN,
  authenticate: (request) => demandHeader(request, 'authorization', `Bearer ${KEY}`),
  error: (status, message) => ({ body: { object: 'error', message, type: 'BadRequestError', param: null, code: status } }),
  apis: [
    completionsApi(
      /^\/v1\/chat\/completions$/,
      { model: OPEN, thoughts: 'reasoning_content', newId: (at) => `functions.get_weather:${at}` },
      {
        check(asked) {
          const { body } = asked
          demand(body['model'] === OPEN, `The model \`${textOf(body['model'])}\` does not exist.`)
          for (const { role } of listOf(body['messages'])) demand(role !== 'developer', 'Unexpected message role.')
          checkTurns(asked)
          // The template of the model needs its thoughts beside its calls (danny-avila/LibreChat#12836).
          const messages = listOf(body['messages'])
          if ((body['reasoning_effort'] ?? 'none') !== 'none')
            for (const message of messages.filter((one) => listOf(one['tool_calls']).length > 0))
              demand(textOf(message['reasoning_content']) !== '', 'limit: The reasoning_content in the thinking mode must be passed back to the API.')
        },
      },
    ),
  ],
}
