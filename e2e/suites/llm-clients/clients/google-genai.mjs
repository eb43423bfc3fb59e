// Google's SDK for JavaScript, of the repository's own packages.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { GoogleGenAI } from '@google/genai'

const plan = JSON.parse(process.argv[2])
const HELLO = 'Hello, world. Grüß Gott 👋.'
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const DEGREES = { Paris: 21, Rome: 25, Oslo: 3, Bergen: 7 }
const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const WEATHER = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'integer' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
}
const tools = [{ functionDeclarations: [{ name: 'get_weather', description: 'the weather of a city', parametersJsonSchema: CITY }] }]

function same(actual, expected) {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) throw new Error(`${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`)
}

const modelsOf = ({ url }) => new GoogleGenAI({ apiKey: 'AIzaKeyOfTheClient', httpOptions: { baseUrl: url, timeout: 30_000 } }).models
const nameOf = ({ model }) => model.replace('google/', '')
const user = (...parts) => ({ role: 'user', parts })

/** The content of a response; that of a stream has the parts of all pieces. */
async function ask(provider, isStreamed, contents, config) {
  const params = { model: nameOf(provider), contents, config }
  if (!isStreamed) return (await modelsOf(provider).generateContent(params)).candidates[0].content
  const parts = []
  for await (const piece of await modelsOf(provider).generateContentStream(params)) parts.push(...(piece.candidates[0].content.parts ?? []))
  return { role: 'model', parts }
}

const said = ({ parts }) => parts.map(({ text, thought }) => (thought === true ? '' : (text ?? ''))).join('')

/** One turn with tools: adds the response and the results of its calls to the contents. */
async function turn(provider, isStreamed, contents, config) {
  const content = await ask(provider, isStreamed, contents, { ...config, tools })
  const calls = content.parts.flatMap(({ functionCall }) => functionCall ?? [])
  contents.push(content)
  const results = calls.map(({ id, name, args: { city } }) => ({
    functionResponse: { ...(id !== undefined && { id }), name, response: { result: `${DEGREES[city]} degrees in ${city}` } },
  }))
  if (results.length > 0) contents.push(user(...results))
  return { text: said(content), cities: calls.map(({ args: { city } }) => city) }
}

const features = {
  async text(provider) {
    same(said(await ask(provider, false, 'Say hello.', { systemInstruction: 'Be short.' })), HELLO)
  },
  async stream(provider) {
    same(said(await ask(provider, true, 'Say hello.')), HELLO)
  },
  async tools(provider) {
    for (const isStreamed of [false, true]) {
      const contents = [user({ text: 'Weather of Paris and Rome?' })]
      same((await turn(provider, isStreamed, contents)).cities, ['Paris', 'Rome'])
      same((await turn(provider, isStreamed, contents)).text, '21 degrees in Paris; 25 degrees in Rome')
    }
  },
  async image(provider) {
    const contents = [user({ inlineData: { mimeType: 'image/png', data: PNG } }, { text: 'What is in the picture?' })]
    same(said(await ask(provider, false, contents)), `image/png of ${Buffer.from(PNG, 'base64').length} bytes`)
  },
  async thinking(provider) {
    for (const isStreamed of [false, true]) {
      const contents = [user({ text: 'Weather of Oslo, then of Bergen?' })]
      const config = { thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } }
      for (const city of ['Oslo', 'Bergen']) same((await turn(provider, isStreamed, contents, config)).cities, [city])
      same((await turn(provider, isStreamed, contents, config)).text, '3 degrees in Oslo; 7 degrees in Bergen')
      contents.push(user({ text: 'Say hello.' }))
      same((await turn(provider, isStreamed, contents, config)).text, HELLO)
    }
  },
  async schema(provider) {
    const config = { responseMimeType: 'application/json', responseJsonSchema: WEATHER }
    same(JSON.parse(said(await ask(provider, false, 'Weather as JSON of Paris, please.', config))), { city: 'Paris', degrees: 21 })
  },
  async error(provider) {
    for (const isStreamed of [false, true]) {
      const error = await ask(provider, isStreamed, 'Fail with 429.').then(
        () => new Error('no error'),
        (thrown) => thrown,
      )
      if (error.status !== 429) throw error
      same(error.message.includes('slow down'), true)
    }
  },
  async cancel(provider) {
    const tag = randomUUID().replaceAll('-', '')
    const controller = new AbortController()
    const config = { abortSignal: controller.signal }
    const pieces = await modelsOf(provider).generateContentStream({ model: nameOf(provider), contents: `Count to a million, ${tag}`, config })
    for await (const { text } of pieces) if (text) break
    controller.abort()
    same(await (await fetch(`${plan.control}/${tag}`)).json(), { isGone: true })
  },
}

async function attempt(run, provider) {
  try {
    await run(provider)
    return { outcome: 'works' }
  } catch (error) {
    if ([400, 404].includes(error.status) && !error.message.includes('violation')) return { outcome: 'rejected', status: error.status, reason: error.message }
    return { outcome: 'fails', reason: error.message, trace: error.stack }
  }
}

const print = (value) => console.log(JSON.stringify(value))
const { version } = JSON.parse(readFileSync(new URL('../../../../node_modules/@google/genai/package.json', import.meta.url)))
print({ version })
for (const provider of plan.providers)
  for (const [feature, run] of Object.entries(features)) {
    if (plan.only && !plan.only.includes(feature)) continue
    const started = Date.now()
    const outcome = await attempt(run, provider)
    print({ provider: provider.name, feature, seconds: (Date.now() - started) / 1000, ...outcome })
  }
