import type { Cause, Scope, Signal } from './types.ts'

/** Vendors whose errors have one shape. OpenAI's is that of Azure, Mistral, Groq, DeepSeek, xAI, OpenRouter, vLLM, llama.cpp and Ollama too. */
export type Api = 'openai' | 'anthropic' | 'bedrock' | 'google'

const openaiErrors = 'developers.openai.com/api/docs/guides/error-codes'
const azureErrors = 'learn.microsoft.com/azure/ai-services/openai/reference'
const azureFilter = 'learn.microsoft.com/azure/ai-services/openai/concepts/content-filter'
const openrouter = 'openrouter.ai/docs/api/reference/errors-and-debugging'
const groq = 'console.groq.com/docs/errors'
const deepseek = 'api-docs.deepseek.com/quick_start/error_codes'
const anthropicErrors = 'platform.claude.com/docs/en/api/errors'
const bedrockErrors = 'docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html'
const bedrockFrames = 'docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html'
const geminiErrors = 'ai.google.dev/gemini-api/docs/troubleshooting'
const googleReasons = 'github.com/googleapis/googleapis google/api/error_reason.proto'
const litellm = 'github.com/BerriAI/litellm litellm/litellm_core_utils/exception_mapping_utils.py'

/** Statuses with which a provider rejects a request for its content. */
const rejected = [400, 413, 422]

/** A prompt that is longer than the window of the model, in the words of each provider. */
const isTooLong = new RegExp(
  [
    // OpenAI, Azure, DeepSeek, vLLM, Mistral, OpenRouter, Ollama
    'maximum context length',
    // xAI
    'maximum prompt length is',
    // llama.cpp
    'exceeds the available context size',
    // Ollama
    'exceeds the context length',
    // Anthropic
    'prompt is too long',
    'exceed context limit',
    // Bedrock
    'input is too long',
    'too many input tokens',
    'expected maxLength',
    // Gemini, Vertex AI
    'exceeds the maximum number of tokens',
  ].join('|'),
  'i',
)

/** For each API the signals of a cause; the first match counts. Signals of statuses alone are in `byStatus`. */
export const signals: Readonly<Record<Api, readonly Signal[]>> = {
  openai: [
    {
      codes: [
        'insufficient_quota',
        'credit_balance_exhausted',
        'organization_spend_limit_exceeded',
        'project_spend_limit_exceeded',
        'organization_usage_limit_exceeded',
        'billing_hard_limit_reached',
        'billing_not_active',
      ],
      cause: 'Quota',
      scope: 'account',
      source: openaiErrors,
    },
    // Credit that requests in flight hold: it returns when they end.
    { status: [402], codes: ['openrouter_in_flight_budget', 'in_flight_budget_exhausted'], cause: 'RateLimit', scope: 'request', source: openrouter },
    // One request needs more tokens than the account has in a minute: waiting does not help, another target may.
    { status: [413, 429], says: /^Request too large for /i, cause: 'ContextLength', scope: 'request', source: 'console.groq.com/docs/rate-limits' },
    { codes: ['context_length_exceeded', 'exceed_context_size_error'], cause: 'ContextLength', scope: 'request', source: `${openaiErrors}, llama.cpp #15780` },
    { status: rejected, says: isTooLong, cause: 'ContextLength', scope: 'request', source: litellm },
    {
      codes: [
        'content_policy_violation',
        'content_filter',
        'responsibleaipolicyviolation',
        'bio_policy',
        'safety_check',
        'flagged_input',
        'moderation_blocked',
      ],
      cause: 'ContentFilter',
      scope: 'request',
      source: `${azureFilter}, ${openrouter}`,
    },
    // OpenRouter has the same code for a message that is malformed.
    { codes: ['invalid_prompt'], says: /flagged|usage polic/i, cause: 'ContentFilter', scope: 'request', source: openaiErrors },
    { codes: ['slow_down', 'rate_limit_exceeded'], cause: 'RateLimit', scope: 'model', source: openaiErrors },
    { status: [429], says: /experiencing high demand/i, cause: 'Overloaded', scope: 'endpoint', source: azureErrors },
    { status: [429], says: /^Service tier capacity exceeded/i, cause: 'Overloaded', scope: 'endpoint', source: litellm },
    {
      codes: ['server_is_overloaded', 'service_unavailable_error', 'engine_overloaded', 'capacity_exceeded', 'unavailable_error', 'provider_overloaded'],
      cause: 'Overloaded',
      scope: 'endpoint',
      source: `${openaiErrors}, ${groq}`,
    },
    { codes: ['insufficient_system_resource'], cause: 'Overloaded', scope: 'endpoint', source: 'api-docs.deepseek.com/api/create-chat-completion' },
    {
      codes: ['model_not_found', 'deploymentnotfound', 'notfounderror', 'model_decommissioned', 'invalid_model', 'unsupported_country_region_territory'],
      cause: 'ModelNotFound',
      scope: 'model',
      source: `${openaiErrors}, ${azureErrors}, ${groq}`,
    },
    { status: rejected, says: /^Model Not Exist/i, cause: 'ModelNotFound', scope: 'model', source: `${deepseek}, api7/aisix#371` },
    { codes: ['invalid_api_key', 'invalid_authentication', 'account_deactivated'], cause: 'Auth', scope: 'credential', source: openaiErrors },
    // xAI rejects a wrong key with status 400.
    { status: rejected, says: /^Incorrect API key provided/i, cause: 'Auth', scope: 'credential', source: 'docs.x.ai/docs/key-information/debugging' },
  ],
  anthropic: [
    { codes: ['billing_error', 'enforced_spend_limit_reached'], cause: 'Quota', scope: 'account', source: anthropicErrors },
    {
      status: [400],
      says: /^(?:Your credit balance is too low|You have reached your specified API usage limits)/i,
      cause: 'Quota',
      scope: 'account',
      source: `${anthropicErrors} (spend limit reached)`,
    },
    { codes: ['overloaded_error'], cause: 'Overloaded', scope: 'endpoint', source: anthropicErrors },
    { codes: ['timeout_error'], cause: 'Timeout', scope: 'endpoint', source: anthropicErrors },
    // The limit is one of bytes, not of tokens.
    { codes: ['request_too_large'], cause: 'Invalid', scope: 'request', source: anthropicErrors },
    { status: rejected, says: isTooLong, cause: 'ContextLength', scope: 'request', source: litellm },
    { status: rejected, says: /content filtering policy/i, cause: 'ContentFilter', scope: 'request', source: litellm },
    { codes: ['rate_limit_error'], cause: 'RateLimit', scope: 'model', source: anthropicErrors },
    { codes: ['not_found_error'], cause: 'ModelNotFound', scope: 'model', source: anthropicErrors },
    { codes: ['authentication_error'], cause: 'Auth', scope: 'credential', source: anthropicErrors },
    { codes: ['permission_error'], cause: 'Auth', scope: 'model', source: anthropicErrors },
  ],
  bedrock: [
    { codes: ['throttlingexception', 'servicequotaexceededexception'], cause: 'RateLimit', scope: 'model', source: bedrockErrors },
    { codes: ['modelnotreadyexception', 'serviceunavailableexception', 'serviceunavailable'], cause: 'Overloaded', scope: 'endpoint', source: bedrockErrors },
    { codes: ['modeltimeoutexception'], cause: 'Timeout', scope: 'endpoint', source: bedrockErrors },
    {
      codes: ['modelerrorexception', 'modelstreamerrorexception', 'internalserverexception', 'internalfailure'],
      cause: 'ServerError',
      scope: 'endpoint',
      source: bedrockFrames,
    },
    { codes: ['validationexception'], says: isTooLong, cause: 'ContextLength', scope: 'request', source: litellm },
    { codes: ['validationexception'], says: /content filtering policy/i, cause: 'ContentFilter', scope: 'request', source: litellm },
    {
      codes: ['validationexception'],
      says: /^(?:The provided model identifier is invalid|Invocation of model ID \S+ with on-demand throughput isn.t supported)/i,
      cause: 'ModelNotFound',
      scope: 'model',
      source: bedrockErrors,
    },
    { codes: ['resourcenotfoundexception', 'ftuformnotfilled', 'mpagreementbeingcreated'], cause: 'ModelNotFound', scope: 'model', source: bedrockErrors },
    {
      codes: ['accessdeniedexception'],
      says: /access to the model/i,
      cause: 'ModelNotFound',
      scope: 'model',
      source: 'docs.aws.amazon.com/bedrock/latest/userguide/model-access.html',
    },
    {
      codes: [
        'unrecognizedclientexception',
        'invalidclienttokenid',
        'invalidsignatureexception',
        'incompletesignature',
        'expiredtokenexception',
        'requestexpired',
        'missingauthenticationtokenexception',
        'notauthorized',
        'optinrequired',
      ],
      cause: 'Auth',
      scope: 'credential',
      source: bedrockErrors,
    },
    { codes: ['accessdeniedexception'], cause: 'Auth', scope: 'model', source: bedrockErrors },
  ],
  google: [
    { codes: ['quota_exceeded', 'payment_required', 'billing_disabled'], cause: 'Quota', scope: 'account', source: `${geminiErrors}, ${googleReasons}` },
    { status: [402], codes: ['resource_exhausted'], cause: 'Quota', scope: 'account', source: geminiErrors },
    // The limit of a day, or of a tier that does not have the model: a delay in the response is one for the limit of a minute.
    { status: [429], codes: ['quota_per_day'], cause: 'Quota', scope: 'model', source: 'ai.google.dev/gemini-api/docs/rate-limits' },
    { status: [429], codes: ['resource_exhausted'], says: /\blimit: 0\b/, cause: 'Quota', scope: 'model', source: 'ai.google.dev/gemini-api/docs/rate-limits' },
    { codes: ['resource_exhausted'], cause: 'RateLimit', scope: 'model', source: geminiErrors },
    { status: [...rejected, 500], says: isTooLong, cause: 'ContextLength', scope: 'request', source: litellm },
    {
      codes: ['api_key_invalid', 'api_key_expired', 'access_token_expired', 'access_token_type_unsupported', 'consumer_suspended', 'service_disabled'],
      cause: 'Auth',
      scope: 'credential',
      source: googleReasons,
    },
    { codes: ['unauthenticated'], cause: 'Auth', scope: 'credential', source: geminiErrors },
    { codes: ['permission_denied'], cause: 'Auth', scope: 'model', source: geminiErrors },
    {
      codes: ['failed_precondition'],
      says: /location is not supported|free tier is not available|organization policy|allowlist/i,
      cause: 'ModelNotFound',
      scope: 'model',
      source: geminiErrors,
    },
    { codes: ['not_found'], cause: 'ModelNotFound', scope: 'model', source: geminiErrors },
    { codes: ['unavailable'], cause: 'Overloaded', scope: 'endpoint', source: geminiErrors },
    { codes: ['deadline_exceeded'], cause: 'Timeout', scope: 'endpoint', source: geminiErrors },
    { codes: ['cancelled'], cause: 'ServerError', scope: 'endpoint', source: geminiErrors },
  ],
}

/** Codes of requests that are invalid for any reason: they count if no other signal of any API matches. */
export const generic: readonly Signal[] = [
  { codes: ['invalid_request_error'], status: rejected, cause: 'Invalid', scope: 'request', source: anthropicErrors },
  { codes: ['validationexception', 'validationerror'], cause: 'Invalid', scope: 'request', source: bedrockErrors },
  { codes: ['invalid_argument', 'failed_precondition'], cause: 'Invalid', scope: 'request', source: geminiErrors },
]

type Found = { readonly cause: Cause; readonly scope: Scope }
const timeout: Found = { cause: 'Timeout', scope: 'endpoint' }
const overloaded: Found = { cause: 'Overloaded', scope: 'endpoint' }
const notFound: Found = { cause: 'ModelNotFound', scope: 'model' }
const serverError: Found = { cause: 'ServerError', scope: 'endpoint' }
const invalid: Found = { cause: 'Invalid', scope: 'request' }

/** 498 is of Groq, 524 of Cloudflare (OpenRouter), 529 of Anthropic, 499 of Google's gRPC mapping, 424 of Bedrock. */
const statuses: Readonly<Record<number, Found>> = {
  401: { cause: 'Auth', scope: 'credential' },
  402: { cause: 'Quota', scope: 'account' },
  // A firewall in front of the provider may reject a request for its content.
  403: { cause: 'Auth', scope: 'request' },
  404: notFound,
  408: timeout,
  410: notFound,
  424: serverError,
  429: { cause: 'RateLimit', scope: 'model' },
  498: overloaded,
  499: serverError,
  503: overloaded,
  504: timeout,
  524: timeout,
  529: overloaded,
}

/** The cause of an error that has no other signal. An error without a status is one in a response with status 200. */
export function byStatus(status: number | undefined): Found {
  if (status === undefined) return serverError
  return statuses[status] ?? (status >= 500 ? serverError : invalid)
}
