import type { HeaderList } from '../../../http/headers.ts'
import { isChatFormat, isCountFormat } from '../common/types.ts'
import type { Provider, ProviderSettings } from './types.ts'

const VERSION = '2023-06-01'
/** Headers that browsers add. The API treats requests with them as coming from a web page. */
const browserHeaders = /^(?:origin|access-control-request-.*|sec-fetch-.*)$/

/** Anthropic, with its Messages API. */
export function createAnthropic({ model }: ProviderSettings<'providerC'>): Provider {
  return {
    system: 'anthropic',
    host: 'api.anthropic.com',
    model,
    defaultAuth: undefined,
    supports: (from) => (isCountFormat(from) ? ['messagesCount'] : isChatFormat(from) ? ['messages'] : []),
    targetOf: () => 'anthropic',
    pathFor: ({ format }) => (format === 'messagesCount' ? '/v1/messages/count_tokens' : '/v1/messages'),
    finishHeaders,
  }
}

/** Moves API keys to x-api-key; only OAuth tokens stay bearer tokens (llm.md §4.3). */
function finishHeaders(headers: HeaderList): void {
  headers.set('anthropic-version', VERSION)
  const token = /^bearer +(.+)$/i.exec(headers.get('authorization') ?? '')?.[1]
  if (token?.startsWith('sk-ant-oat') === true) headers.remove('x-api-key')
  else if (token !== undefined) {
    headers.set('x-api-key', token)
    headers.remove('authorization')
  }
  const names = headers.raw.filter((name, index) => index % 2 === 0 && browserHeaders.test(name))
  for (const name of names) headers.remove(name)
}
