import { splitBaseUrl } from '#api/backend-hosts.ts'
import { CUSTOM_SYSTEM, presets, systemOf, type Preset, type PresetName } from '#api/llm-presets.ts'
import type { CustomProvider } from '#gen/config/types.ts'
import type { HeaderList } from '../../../http/headers.ts'
import { isChatFormat, isEmbeddingsFormat, type UpstreamFormat } from '../common/types.ts'
import type { Provider } from './types.ts'

/** A provider that is data: a preset, or what the user writes in its place (llm.md §4.4). */
interface Description extends Pick<Provider, 'system' | 'host' | 'port' | 'isTls' | 'model' | 'server'> {
  /** Path in front of those of the APIs. */
  readonly base: string
  readonly formats: Preset['formats']
  readonly messages?: string | undefined
  readonly auth?: CustomProvider['auth']
}

/** A provider of the list of presets. */
export function createPreset(name: PresetName, model: string | undefined): Provider {
  const { host = '', base, formats, messages, rules, hasTls } = presets[name]
  return createDescribed({ system: systemOf(name), host, ...(hasTls === true && { isTls: true }), model, base, formats, messages, server: rules })
}

/** A provider that the user describes. */
export function createCustom({ baseUrl, model, formats = ['Completions', 'Embeddings'], auth, rules }: CustomProvider): Provider {
  const { host, port, isTls, path } = splitBaseUrl(baseUrl)
  return createDescribed({ system: CUSTOM_SYSTEM, host, port, isTls, model, base: path, formats, server: rules, auth })
}

const VERSION = '2023-06-01'

function createDescribed({ base, formats, messages = `${base}/messages`, auth, ...facts }: Description): Provider {
  const paths: Partial<Record<UpstreamFormat, string>> = {
    completions: `${base}/chat/completions`,
    responses: `${base}/responses`,
    messages,
    embeddings: `${base}/embeddings`,
  }
  const all = formats.map((format) => format.toLowerCase() as UpstreamFormat)
  const chats = all.filter((format) => format !== 'embeddings')
  const embeddings = all.filter((format) => format === 'embeddings')
  return {
    ...facts,
    defaultAuth: undefined,
    supports: (from) => (isChatFormat(from) ? chats : isEmbeddingsFormat(from) ? embeddings : []),
    targetOf: (format) => (format === 'responses' ? 'responses' : format === 'messages' ? 'anthropic' : 'compatible'),
    pathFor: ({ format }) => paths[format] ?? base,
    finishHeaders(headers, _from, path) {
      if (auth?.header !== undefined || auth?.scheme !== undefined) moveKey(headers, auth)
      if (path === messages) addMessagesHeaders(headers)
    },
  }
}

/** The credential of `policies.auth`, which is a bearer token until now. */
const tokenOf = (headers: HeaderList): string | undefined => /^bearer +(.+)$/i.exec(headers.get('authorization') ?? '')?.[1]

/** Sends the credential in the header of the server, in place of that of the client. */
function moveKey(headers: HeaderList, { header = 'authorization', scheme }: NonNullable<CustomProvider['auth']>): void {
  const token = tokenOf(headers)
  if (token === undefined) return
  headers.remove('authorization')
  headers.set(header.toLowerCase(), scheme === undefined ? (header.toLowerCase() === 'authorization' ? `Bearer ${token}` : token) : `${scheme} ${token}`)
}

/** Servers with the Messages API take keys as Anthropic does, or as bearer tokens, by vendor. */
function addMessagesHeaders(headers: HeaderList): void {
  if (!headers.has('anthropic-version')) headers.set('anthropic-version', VERSION)
  const token = tokenOf(headers)
  if (token !== undefined) headers.set('x-api-key', token)
}
