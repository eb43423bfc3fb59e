/**
 * Writes dataplane/backend/llm/pricing/built-in.json, the price catalog that is part of the product, from LiteLLM's public list of prices (MIT).
 *
 *   make prices                 downloads the list
 *   make prices FILE=list.json  reads a copy, such as `model_prices_and_context_window_backup.json` of the Python package litellm
 */
import { readFile, writeFile } from 'node:fs/promises'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { readPriceCatalog, type CatalogModel, type CatalogRates, type PriceCatalog } from '../price-catalog.ts'

const LIST = 'https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json'
const FILE = new URL('../../dataplane/backend/llm/pricing/built-in.json', import.meta.url)

/** Our provider, by the provider of the list, and the prefix of its names. */
const PROVIDERS: Readonly<Record<string, { readonly provider: string; readonly prefix?: string }>> = {
  openai: { provider: 'openai' },
  'text-completion-openai': { provider: 'openai' },
  anthropic: { provider: 'anthropic' },
  azure: { provider: 'azure', prefix: 'azure/' },
  gemini: { provider: 'gcp.gemini', prefix: 'gemini/' },
  'vertex_ai-language-models': { provider: 'gcp.vertex_ai' },
  'vertex_ai-embedding-models': { provider: 'gcp.vertex_ai' },
  'vertex_ai-anthropic_models': { provider: 'gcp.vertex_ai', prefix: 'vertex_ai/' },
  'vertex_ai-mistral_models': { provider: 'gcp.vertex_ai', prefix: 'vertex_ai/' },
  'vertex_ai-llama_models': { provider: 'gcp.vertex_ai', prefix: 'vertex_ai/' },
  bedrock: { provider: 'aws.bedrock' },
  bedrock_converse: { provider: 'aws.bedrock' },
}
const MODES = new Set(['chat', 'completion', 'responses', 'embedding'])
/** Modes of APIs that only servers with OpenAI's API have. Their models may be billed by units, and moderations cost nothing. */
const OPENAI_MODES = new Set(['rerank', 'moderation', 'image_generation', 'image_edit', 'audio_speech', 'audio_transcription'])
const OPENAI_PROVIDERS = new Set(['openai', 'azure'])
const FIELDS: Readonly<Record<keyof CatalogRates, string>> = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cacheRead: 'cache_read_input_token_cost',
  cacheWrite: 'cache_creation_input_token_cost',
  reasoning: 'output_cost_per_reasoning_token',
  inputAudio: 'input_cost_per_audio_token',
  outputAudio: 'output_cost_per_audio_token',
  inputImage: 'input_cost_per_image_token',
  outputImage: 'output_cost_per_image_token',
  searches: 'input_cost_per_query',
  images: 'output_cost_per_image',
  seconds: 'input_cost_per_second',
  characters: 'input_cost_per_character',
}
/** Suffixes of the list by service tier. */
const SERVICE_TIERS: Readonly<Record<string, string>> = { flex: '_flex', priority: '_priority', batch: '_batches' }
const TAGS: Readonly<Record<string, string>> = {
  supports_function_calling: 'tools',
  supports_vision: 'vision',
  supports_audio_input: 'audio',
  supports_reasoning: 'reasoning',
}

type Listed = Readonly<Record<string, unknown>>

function readRates(listed: Listed, suffix = ''): Partial<CatalogRates> {
  const entries = Object.entries(FIELDS).map(([field, name]) => [field, listed[`${name}${suffix}`]] as const)
  return Object.fromEntries(entries.filter(([, price]) => typeof price === 'number').map(([field, price]) => [field, toText(price as number)]))
}

/** Dollars per million tokens, with at most six decimals. */
const toText = (perToken: number): string => String(Number((perToken * 1_000_000).toFixed(6)))

function readModel(listed: Listed): CatalogModel | undefined {
  const mode = String(listed['mode'])
  const isOpenai = OPENAI_MODES.has(mode)
  // Tokens of images are the output of a model that makes them.
  const { input = isOpenai ? '0' : undefined, outputImage, output = outputImage ?? '0', ...rest } = readRates(listed)
  const others = { ...rest, ...(outputImage !== undefined && { outputImage }) }
  if (input === undefined || (output === '0' && !isOpenai && mode !== 'embedding')) return undefined
  // A row without any price would make a model free.
  if (isOpenai && mode !== 'moderation' && [input, output, ...Object.values(others)].every((rate) => rate === '0')) return undefined
  const tiers = readTiers(listed)
  const services = Object.entries(SERVICE_TIERS).flatMap(([tier, suffix]) => {
    const rates = readRates(listed, suffix)
    const above = readTiers(listed, suffix)
    return Object.keys(rates).length === 0 ? [] : [[tier, { rates, ...(above.length > 0 && { tiers: above }) }]]
  })
  const tags = Object.entries(TAGS).flatMap(([field, tag]) => (listed[field] === true ? [tag] : []))
  const [contextWindow, maxOutput] = [listed['max_input_tokens'], listed['max_output_tokens']].map((count) =>
    Number.isSafeInteger(count) && Number(count) > 0 ? Number(count) : undefined,
  )
  const { source } = listed
  return {
    rates: { input, output, ...others },
    ...(tiers.length > 0 && { tiers }),
    ...(services.length > 0 && { serviceTiers: Object.fromEntries(services) }),
    ...(tags.length > 0 && { tags }),
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutput !== undefined && { maxOutput }),
    ...(typeof source === 'string' && source.startsWith('https://') && { source: source.replace(/[?#].*/, '') }),
  }
}

function readTiers(listed: Listed, suffix = ''): NonNullable<CatalogModel['tiers']> {
  const limits = Object.keys(listed).flatMap((name) => /^input_cost_per_token_above_(\d+)k_tokens(.*)$/.exec(name) ?? [])
  const own = limits.flatMap((text, index) => (index % 3 === 1 && limits[index + 1] === suffix ? [Number(text)] : []))
  return own.toSorted((a, b) => a - b).map((thousands) => ({ contextOver: thousands * 1000, rates: readRates(listed, `_above_${thousands}k_tokens${suffix}`) }))
}

const isListed = (provider: string, mode: string): boolean => MODES.has(mode) || (OPENAI_MODES.has(mode) && OPENAI_PROVIDERS.has(provider))

function convert(list: Readonly<Record<string, Listed>>): PriceCatalog {
  const providers: Record<string, { models: Record<string, CatalogModel> }> = {}
  for (const [name, listed] of Object.entries(list)) {
    const { provider, prefix = '' } = PROVIDERS[String(listed['litellm_provider'])] ?? {}
    const id = name.slice(prefix.length)
    // Names with further slashes are regions, sizes and commitments, which no request names.
    if (provider === undefined || !name.startsWith(prefix) || id.includes('/') || id.startsWith('ft:') || !isListed(provider, String(listed['mode']))) continue
    const model = readModel(listed)
    if (model !== undefined) (providers[provider] ??= { models: {} }).models[id] = model
  }
  const sorted = Object.entries(providers).map(([provider, { models }]) => {
    const entries = Object.entries(models).toSorted(([a], [b]) => (a < b ? -1 : 1))
    return [provider, { models: Object.fromEntries(entries) }] as const
  })
  return readPriceCatalog({ providers: Object.fromEntries(sorted.toSorted(([a], [b]) => (a < b ? -1 : 1))) })
}

/** The catalog with the day of each model's last change. */
function dated(catalog: PriceCatalog, previous: PriceCatalog, today: string): PriceCatalog {
  const providers = Object.entries(catalog.providers).map(([provider, { models }]) => {
    const before = previous.providers[provider]?.models ?? {}
    const rows = Object.entries(models).map(([name, model]) => {
      const { date, ...known } = before[name] ?? { rates: undefined }
      return [name, { ...model, date: date !== undefined && isDeepStrictEqual(known, model) ? date : today }] as const
    })
    return [provider, { models: Object.fromEntries(rows) }] as const
  })
  return { providers: Object.fromEntries(providers) }
}

/** One line for each model, so that a change of a price is a change of a line. */
function print({ providers }: PriceCatalog, date: string): string {
  const blocks = Object.entries(providers).map(([provider, { models }]) => {
    const lines = Object.entries(models).map(([name, model]) => `    ${JSON.stringify(name)}: ${JSON.stringify(model)}`)
    return `  ${JSON.stringify(provider)}: { "models": {\n${lines.join(',\n')}\n  } }`
  })
  return `{ "date": ${JSON.stringify(date)}, "source": ${JSON.stringify(LIST)}, "providers": {\n${blocks.join(',\n')}\n} }\n`
}

const { values } = parseArgs({ options: { file: { type: 'string' }, date: { type: 'string' } } })
const text = values.file === undefined ? await (await fetch(LIST)).text() : await readFile(values.file, 'utf8')
const date = values.date ?? new Date().toISOString().slice(0, 10)
const previous = JSON.parse(await readFile(FILE, 'utf8')) as PriceCatalog
const catalog = dated(convert(JSON.parse(text) as Record<string, Listed>), previous, date)
await writeFile(FILE, print(catalog, date))
for (const [provider, { models }] of Object.entries(catalog.providers)) console.log(`${provider}: ${Object.keys(models).length} models`)
