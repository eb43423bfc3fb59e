import { boolean, choice, object, ref, type Definitions } from '../../schema.ts'

const bodyMode = (whose: string) =>
  choice(
    ['None', 'Buffered', 'BufferedPartial', 'FullDuplexStreamed'],
    `How the processor gets the ${whose} body. None: not at all. Buffered: as a whole, up to maxBufferSize; a longer one is an error. BufferedPartial: its beginning, up to maxBufferSize; the rest follows unchanged. FullDuplexStreamed: piece by piece, and what it sends back is the body.`,
    { default: 'FullDuplexStreamed' },
  )
const sendMode = (what: string) => choice(['Send', 'Skip'], `Whether the processor gets the ${what}.`, { default: 'Send' })

export const extProcDefinitions: Definitions = {
  ExtProc: object(
    "External processing: a gRPC service (Envoy's `envoy.service.ext_proc.v3.ExternalProcessor`) sees, and may change, headers, bodies and trailers of request and response. When it fails, the request is answered 500 unless failureMode says otherwise.",
    {
      backendRef: ref('BackendObjectReference', 'The processor: a Service or a ProxyBackend.'),
      failureMode: choice(
        ['FailClosed', 'FailOpen'],
        'What happens when the processor fails: 500, or the exchange goes on without it. FailOpen holds as long as nothing of the request body was sent to it; later failures, and those of the response, are always 500.',
        { default: 'FailClosed' },
      ),
      messageTimeout: ref('Duration', 'How long the processor may take for each message. Unset: as long as the request may take.'),
      processingOptions: ref('ExtProcProcessing'),
    },
    ['backendRef'],
  ),
  ExtProcProcessing: object('What the processor gets to see.', {
    requestHeaderMode: sendMode('headers of the request'),
    requestBodyMode: bodyMode("request's"),
    requestTrailerMode: sendMode('trailers of the request; they are always sent with FullDuplexStreamed bodies'),
    responseHeaderMode: sendMode('headers of the response'),
    responseBodyMode: bodyMode("response's"),
    responseTrailerMode: sendMode('trailers of the response; they are always sent with FullDuplexStreamed bodies'),
    allowModeOverride: boolean("Whether the processor may change, with its answer to the response headers, what it gets of the response's body and trailers.", {
      default: false,
    }),
  }),
}
