import { anyJson, atLeastOneOf, boolean, choice, integer, list, map, object, ref, string, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

const fields = {
  prompt: ref('AIPromptEnrichment'),
  promptGuard: ref('AIPromptGuard'),
  defaults: list(ref('FieldDefault'), 'Fields of the request body to set where the request does not.', 1, 64),
  overrides: list(ref('FieldDefault'), 'Fields of the request body to set in any case.', 1, 64),
  transformations: list(ref('FieldTransformation'), 'Fields of the request body to compute. Takes precedence over overrides of the same field.', 1, 64),
  modelAliases: map(
    { type: 'string' },
    'Model names that clients may use, each with the model name of the provider. A `*` in a name matches any text; an exact name takes precedence over patterns, a longer pattern over a shorter one.',
    undefined,
    64,
  ),
  promptCaching: ref('PromptCachingConfig'),
  routes: map(
    ref('RouteType'),
    'Types of requests by URL path: keys are path suffixes, the longest match decides; `*` matches any path. Not set: all requests are Completions.',
    undefined,
    64,
  ),
  unguardedRoutes: choice(
    ['Allow', 'Reject'],
    'Handling of requests of type Passthrough, Detect or Realtime if a prompt guard, `models` of the API key or a token limit is in force: some or all of these do not check such requests. Allow: the request is forwarded, and the status names the paths. Reject: the response is 403. Default: Allow.',
  ),
  unsupported: choice(
    ['Omit', 'Reject'],
    'Parts of a request that the format of the provider lacks and that only add an option, such as `store` or tools that another provider would run. Omit: left out, and named in the response header `x-proxy-omitted`, the access log and a metric. Reject: the response is 400. What changes the meaning of the response is 400 in both cases. Default: Omit.',
  ),
  firstTokenTimeout: duration(
    'Longest time from sending a streaming request to a provider until the first content of its response. A slower attempt fails: `traffic.retry` repeats it at another provider, or the client gets 504. Default: none.',
    1,
  ),
  streamIdleTimeout: duration(
    'Longest pause between two pieces of a streamed response after its first content. The stream then ends with an error event in the format of the client. Default: none.',
    1,
  ),
  prices: map(
    ref('ModelPrice'),
    'Prices of models, for `llm.cost` and the cost metric. They take precedence over `priceCatalog`. Keys are model names of the response or the request; `*` matches any text, an exact name takes precedence over patterns, a longer pattern over a shorter one.',
    undefined,
    128,
  ),
  priceCatalog: ref('PriceCatalog'),
  cache: ref('LlmCache'),
  reserveTokens: boolean(
    'Counts the tokens of prompts and reserves them in token limits before requests are sent; the response corrects the reservation to the actual usage. Requests whose prompt exceeds a limit are rejected with 429.',
    { default: false },
  ),
}

const price = (description: string) => string(description, { maxLength: 32, pattern: '^[0-9]{1,9}(\\.[0-9]{1,9})?$' })

export const aiDefinitions: Definitions = {
  BackendAI: object('LLM settings; only for backends of type ai. Merges field by field.', fields, [], [atLeastOneOf(...Object.keys(fields))]),
  LlmCache: object(
    'Stores responses to chat requests and returns them to equal requests.',
    {
      tenant: ref('CELExpression', 'Requests share responses only if this text is equal. Without a value, the request is not cached.'),
      ttl: duration('Time for which a response is used. Default: 5m.', 1),
      store: choice(
        ['Memory', 'Redis'],
        'Where responses are stored. Memory: in each replica. Redis: in the server of `config.redis` of the data plane, shared by replicas; without one, in memory. Default: Memory.',
      ),
      tools: choice(
        ['Bypass', 'Allow'],
        'Requests with tools, tool calls or tool results. Allow: they are cached if all tools run at the client. Default: Bypass.',
      ),
    },
    ['tenant'],
  ),
  PriceCatalog: object(
    'Prices of models that `prices` does not name, in US dollars.',
    {
      configMapRef: ref('PriceCatalogReference'),
      builtIn: choice(['Enabled', 'Disabled'], 'Prices that are part of the product, of models that the ConfigMap does not name.', { default: 'Enabled' }),
    },
    [],
    [atLeastOneOf('configMapRef', 'builtIn')],
  ),
  PriceCatalogReference: object(
    'A price catalog: a key of a ConfigMap in the namespace of the referring object, in JSON or YAML. A catalog that is missing or broken is reported in the status; its models have no price.',
    {
      name: string('Name of the ConfigMap.', { minLength: 1, maxLength: 253 }),
      key: string('Key.', { minLength: 1, maxLength: 253 }),
    },
    ['name', 'key'],
  ),
  RouteType: choice(
    ['Completions', 'Messages', 'Models', 'Passthrough', 'Detect', 'Responses', 'TokenCount', 'Embeddings', 'Realtime', 'Gemini', 'Rerank', 'Moderations'],
    'Type of a request. Completions: OpenAI chat completions. Messages: Anthropic messages. Models: list of models. Passthrough: forwarded unchanged. Detect: forwarded unchanged, but parsed for telemetry and limits. Responses: OpenAI responses. TokenCount: token counting in the messages format. Embeddings: OpenAI embeddings. Realtime: OpenAI realtime (WebSocket). Gemini: generateContent, countTokens and embedContent. Rerank: rankings of documents as Cohere, Jina and vLLM have them. Moderations: OpenAI moderations.',
  ),
  FieldDefault: object(
    'A field of the request body and its value.',
    { field: ref('ShortString', 'Key of the JSON request body, top level.'), value: anyJson('Value: any JSON but null.') },
    ['field', 'value'],
  ),
  FieldTransformation: object(
    'A field of the request body and how to compute it.',
    {
      field: ref('ShortString', 'Key of the JSON request body, top level.'),
      expression: ref('CELExpression', 'Value, computed from the request body (`llmRequest`). When it fails the field is removed.'),
    },
    ['field', 'expression'],
  ),
  AIPromptEnrichment: object(
    'Static messages added to every request; only for chat requests. A provider without a system role, but with a system field, needs `defaults` to set that field instead.',
    {
      prepend: list(ref('Message'), 'Messages before those of the request.'),
      append: list(ref('Message'), 'Messages after those of the request.'),
    },
  ),
  Message: object(
    'A chat message.',
    { role: string('Role, as the provider names it, for example `system` or `user`; upper case is lowered.'), content: string('Text.') },
    ['role', 'content'],
  ),
  ModelPrice: object(
    'Prices per million tokens or units, in a currency of your choice, as decimal numbers in text such as "2.50".',
    {
      input: price('Price of input tokens.'),
      output: price('Price of output tokens.'),
      cacheRead: price('Price of input tokens that the provider read from its cache. Default: input.'),
      cacheWrite: price('Price of input tokens that the provider wrote to its cache. Default: input.'),
      reasoning: price('Price of output tokens for reasoning. Default: output.'),
      searches: price('Price of search units, of models that rank. Units count if the tokens of a response cost nothing.'),
      images: price('Price of images that a model makes. Units count if the tokens of a response cost nothing.'),
      seconds: price('Price of seconds of audio. Units count if the tokens of a response cost nothing.'),
      characters: price('Price of characters of a text that a model speaks. Units count if the tokens of a response cost nothing.'),
    },
    ['input', 'output'],
  ),
  PromptCachingConfig: object(
    'Adds cache points to requests. Supported by `bedrock` (Amazon Bedrock) for Claude 3 and later and Nova models; ignored elsewhere.',
    {
      cacheSystem: boolean('Cache point after the system messages.', { default: true }),
      cacheMessages: boolean('Cache point in the conversation.', { default: true }),
      cacheTools: boolean('Cache point after the tool specifications.', { default: false }),
      minTokens: integer('Minimum length of the system messages, estimated as words times 1.3.', 0, 2147483647, { default: 1024 }),
    },
  ),
}
