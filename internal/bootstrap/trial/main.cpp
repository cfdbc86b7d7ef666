extern "C" int run_trial(float *, void *);

int main() { return run_trial(nullptr, nullptr); }
