/**
 * Fields of agentgateway's config, by the object that has them, whose loss opens nothing: they name what is not imported either, add features, or record. The
 * import takes all other fields that it does not carry over for protective, also those of later versions.
 */
export const harmlessFields = {
  file: names('backends routeGroups routes services tcpRoutes ui workloads'),
  config: names(`
    additionalTrustDomains backend caAddress caAuthToken clusterId connectionMinTerminationDeadline connectionTerminationDeadline database dns enableIpv6
    gateway hbone histograms mcp modelCatalog namespace network serviceAccount session spiffe standardAttributes storage trustDomain workerThreads`),
  // Fields that are removed from records may be secret: `remove` is not listed.
  logging: names('database filter'),
  metrics: names('fields'),
  tracing: names('attributes backend clientSampling headers host otlpEndpoint otlpProtocol path policies protocol randomSampling resources service'),
  accessLog: names('add database filter otlp'),
  frontend: names('tcp'),
  frontendHttp: names('http1HeaderCase http1IdleTimeout http2ConnectionWindowSize http2FrameSize http2KeepaliveInterval http2KeepaliveTimeout http2WindowSize'),
  listener: names('namespace'),
  tls: names('keyExchangeGroups'),
  route: names('namespace ruleName'),
  policies: names('a2a delay health http requestMirror sessionAffinity tcp'),
  ai: names('defaults promptCaching'),
  backendAuth: names('aws azure gcp'),
  backendTls: names('alpn keyExchangeGroups'),
  retry: names('condition precondition'),
  provider: names('name tokenize'),
  gateway: names('port protocol'),
  gatewayListener: names('hostname name protocol'),
  mcp: names('failureMode gateways'),
  llm: names('gateways providers virtualModels'),
  model: names('defaults health id promptCaching'),
  params: names('azureProjectName azureResourceType tokenize'),
} as const

function names(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}
