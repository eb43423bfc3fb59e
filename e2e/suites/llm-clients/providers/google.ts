import { sse } from '../../../harness/llm/behaviour.ts'
import { demand, demandHeader, KEY, usageOf, Violation, type Api, type Asked, type Vendor } from './api.ts'
import { checkTurns, completionsApi } from './completions.ts'
import { listOf, objectOf, piecesOf, sign, textOf, type Json, type Reply, type Turn, type View } from './script.ts'

/** Gemini 3 on the Gemini API and on Vertex AI: the API that is compatible with OpenAI's, and generateContent. */

const MODEL = 'gemini-3-pro'
/** The fields that the reference of the compatible API lists. `store` and `metadata` are rejected (liliMozi/openhanako#394, ed-donner/agents#45). */
const FIELDS = new Set(
  (
    'model,messages,reasoning_effort,max_tokens,max_completion_tokens,n,temperature,top_p,stop,stream,stream_options,tools,tool_choice,parallel_tool_calls,' +
    'response_format,extra_body,frequency_penalty,presence_penalty,seed,user,logprobs,top_logprobs,modalities,service_tier'
  ).split(','),
)
const SIGNATURE = sign('a thought of Gemini')
/** Accepted in place of a signature (Google's documentation of thought signatures). */
const FILLERS = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']

function checkFields({ body, query }: Asked): void {
  for (const name of Object.keys(body)) demand(FIELDS.has(name), `Invalid JSON payload received. Unknown name "${name}": Cannot find field.`)
  for (const name of query.keys()) throw new Violation(`Invalid JSON payload received. Unknown name "${name}": Cannot bind query parameter.`)
  for (const [at, message] of listOf(body['messages']).entries()) {
    demand(message['role'] !== 'developer', `Please use a valid role: user, model: messages[${at}]`)
    const [first] = listOf(message['tool_calls'])
    if (first === undefined) continue
    const signature = textOf(objectOf(objectOf(first['extra_content'])['google'])['thought_signature'])
    demand(signature === SIGNATURE || FILLERS.includes(signature), 'Function call is missing a thought_signature in functionCall parts.')
  }
}

function checkSchema(schema: Json, place: string): void {
  for (const key of ['$schema', 'const', 'exclusiveMinimum', 'exclusiveMaximum', 'patternProperties', 'propertyNames'])
    demand(schema[key] === undefined, `Invalid JSON payload received. Unknown name "${key}" at '${place}': Cannot find field.`)
}

const compatibleApi = (path: RegExp, model: string): Api =>
  completionsApi(
    path,
    { model, thoughtSignature: SIGNATURE, newId: (at) => `function-call-${String(at).padStart(19, '1')}` },
    {
      check(asked) {
        demand(asked.body['model'] === model, `models/${textOf(asked.body['model'])} is not found for API version v1main`)
        checkFields(asked)
        checkTurns(asked)
      },
    },
  )

const partsOf = (content: Json): readonly Json[] => listOf(content['parts'])

/** generateContent: the SDK of Google reaches it through routes of type Detect. */
function checkGenerate({ body }: Asked): void {
  const contents = listOf(body['contents'])
  for (const [at, content] of contents.entries()) {
    demand(partsOf(content).length > 0, `GenerateContentRequest.contents[${at}].parts: contents.parts must not be empty.`)
    const calls = partsOf(content).filter(({ functionCall }) => functionCall !== undefined)
    if (calls.length === 0) continue
    const signature = textOf(calls[0]?.['thoughtSignature']).replaceAll('-', '+').replaceAll('_', '/')
    demand(signature === SIGNATURE, `Function call is missing a thought_signature in functionCall parts. contents[${at}]`)
    const responses = partsOf(contents[at + 1] ?? {}).filter(({ functionResponse }) => functionResponse !== undefined)
    demand(
      responses.length === calls.length,
      'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
    )
  }
  for (const tool of listOf(body['tools']))
    for (const [at, one] of listOf(tool['functionDeclarations']).entries())
      checkSchema(objectOf(one['parameters']), `tools[0].function_declarations[${at}].parameters`)
}

function readGenerate({ body, path }: Asked): View {
  const config = objectOf(body['generationConfig'])
  return {
    turns: listOf(body['contents']).map((content): Turn => ({
      role: content['role'] === 'model' ? 'assistant' : 'user',
      text: partsOf(content)
        .map(({ text }) => textOf(text))
        .join('\n'),
      images: partsOf(content).flatMap(({ inlineData }) =>
        inlineData === undefined
          ? []
          : // The SDK writes base64 for URLs.
            [
              {
                type: textOf(objectOf(inlineData)['mimeType'] ?? objectOf(inlineData)['mime_type']),
                data: textOf(objectOf(inlineData)['data']).replaceAll('-', '+').replaceAll('_', '/'),
              },
            ],
      ),
      calls: [],
      results: partsOf(content).flatMap(({ functionResponse }) => {
        const result = objectOf(objectOf(functionResponse)['response'])
        return functionResponse === undefined ? [] : [{ id: '', text: textOf(result['result'] ?? result['output']) }]
      }),
    })),
    tools: listOf(body['tools']).flatMap((tool) => listOf(tool['functionDeclarations']).map(({ name }) => textOf(name))),
    hasSchema: config['responseSchema'] !== undefined || config['responseJsonSchema'] !== undefined,
    isThinking: objectOf(config['thinkingConfig'])['includeThoughts'] === true,
    isStreaming: path.includes('streamGenerateContent'),
  }
}

function generateApi(path: RegExp): Api {
  const candidate = (parts: readonly Json[], more: Json = {}): Json => ({
    candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
    modelVersion: MODEL,
    responseId: 'r',
  })
  const parts = ({ thinking, text, calls }: Reply, pieces: (text: string) => string[]): Json[] => [
    ...(thinking === undefined ? [] : pieces(thinking).map((one) => ({ text: one, thought: true }))),
    ...(text === '' ? [] : pieces(text).map((one) => ({ text: one }))),
    ...calls.map(({ name, input }, at) => ({ functionCall: { name, args: input }, ...(at === 0 && { thoughtSignature: SIGNATURE }) })),
  ]
  const end = (reply: Reply): Json => {
    const { input, output } = usageOf(reply)
    return { usageMetadata: { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output } }
  }
  return {
    path,
    check: checkGenerate,
    read: readGenerate,
    write: (reply) => ({
      ...candidate(
        parts(reply, (text) => [text]),
        { finishReason: 'STOP' },
      ),
      ...end(reply),
    }),
    events: (reply) => {
      const all = parts(reply, piecesOf)
      return all.map((part, at) => sse(at === all.length - 1 ? { ...candidate([part], { finishReason: 'STOP' }), ...end(reply) } : candidate([part])))
    },
    endless: () => ({ first: [], next: sse(candidate([{ text: 'one more ' }])) }),
    contentType: 'text/event-stream',
  }
}

const STATUS: Readonly<Record<number, string>> = { 400: 'INVALID_ARGUMENT', 401: 'UNAUTHENTICATED', 404: 'NOT_FOUND', 429: 'RESOURCE_EXHAUSTED' }
/** A bearer token; the key of the client is not sent beside it. */
function authenticate(request: Parameters<Vendor['authenticate']>[0]): void {
  demandHeader(request, 'authorization', `Bearer ${KEY}`)
  demand(request.headers['x-goog-api-key'] === undefined, 'the key of the client is sent')
}

const error: Vendor['error'] = (code, message) => ({ body: [{ error: { code, message, status: STATUS[code] ?? 'INTERNAL' } }] })

export const gemini: Vendor = {
  name: 'Gemini',
  model: MODEL,
  authenticate,
  error,
  apis: [
    compatibleApi(/^\/v1beta\/openai\/chat\/completions$/, MODEL),
    generateApi(/^\/v1(?:beta)?\/models\/gemini-3-pro:(?:generateContent|streamGenerateContent)$/),
  ],
}

export const vertexGemini: Vendor = {
  name: 'Vertex AI, Gemini',
  model: `google/${MODEL}`,
  authenticate,
  error,
  apis: [
    compatibleApi(/^\/v1\/projects\/p\/locations\/us-east5\/endpoints\/openapi\/chat\/completions$/, `google/${MODEL}`),
    generateApi(
      /^\/v1(?:beta1)?\/(?:projects\/p\/locations\/[a-z0-9-]+\/)?publishers\/google\/models\/gemini-3-pro:(?:generateContent|streamGenerateContent)$/,
    ),
  ],
}
